"""The one list of lessons."""

from pages.catalog import LESSONS, ROAD, chapters, near


def test_twenty_lessons_in_four_chapters():
    assert [lesson.number for lesson in LESSONS] == list(range(1, 21))
    assert len({lesson.key for lesson in LESSONS}) == 20
    assert {lesson.key: lesson.number for lesson in LESSONS}.items() >= {
        "rnn": 4,
        "lstm": 6,
        "gru": 7,
        "scoring": 11,
        "questions": 20,
    }.items()
    assert [len(lessons) for lessons in chapters().values()] == [3, 6, 6, 5]
    assert tuple(chapters()) == tuple(ROAD)


def test_a_lesson_is_ready_when_its_page_is_there():
    for lesson in LESSONS:
        assert lesson.ready == lesson.script.is_file()


def test_the_lessons_around_one():
    ready = [lesson for lesson in LESSONS if lesson.ready]
    assert near("") == near("no such lesson") == ()
    for number, lesson in enumerate(ready):
        assert near(lesson.key) == tuple(ready[max(number - 1, 0) : number + 2])
