"""Lesson 10: attention as a weighted mean."""

from pages.ui import kernel_points, kernel_rooms, kernels, lesson, stage
from pages.ui.check import check_yourself
from pages.ui.kernels import KernelConfig
from pages.ui.words import language

config = lesson.head(KernelConfig, kernel_rooms.choose, kernel_points.feed)
trace = kernels.traced(config)
kernel_rooms.cues()
stage.mount(kernels.packed(config, language()), key="stage-kernel", on_touch=kernel_points.touched)
kernel_rooms.notes(trace)
kernel_rooms.what_if(config)
lesson.room("try")
lesson.things_to_try(trace)
lesson.see_more(kernel_rooms.tabs(config, trace), trace)
lesson.room("check")
check_yourself("kernel_regression", kernels.asked(config), trace, str)
lesson.notes_on(trace)
