"""The served app opens in a real browser; and the fixtures that every browser test stands on see what goes wrong."""

import json
import urllib.request

import pytest

from tests.browsing import LiveServer, settle, watch


def test_the_home_page_opens(open_page):
    page = open_page()
    assert page.locator("h1").first.inner_text().strip()
    assert page.locator("[data-testid=stException]").count() == 0


def test_the_server_answers_and_keeps_a_clean_log(server):
    with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=10) as answer:
        assert answer.status == 200
    assert "Uvicorn running" in server.log_text()
    assert server.faults() == []


def test_a_traceback_in_the_log_is_seen(tmp_path):
    watched = object.__new__(LiveServer)  # no second server: only its log
    watched.log = tmp_path / "server.log"
    watched.log.write_text("fine\nTraceback (most recent call last):\n  File x\nValueError: wrong\n", encoding="utf-8")
    assert len(watched.faults()) == 1
    assert "ValueError: wrong" in watched.faults()[0]


@pytest.mark.parametrize("fault", ["console.error('planted')", "setTimeout(() => { throw new Error('planted'); })"])
def test_an_error_in_the_browser_fails_the_test(chromium, fault):
    context, faults = chromium.new_context(), []
    watch(context, faults)
    page = context.new_page()
    page.evaluate(fault)
    page.wait_for_timeout(50)
    context.close()
    assert len(faults) == 1
    assert "planted" in json.dumps(faults)


def test_settle_waits_until_the_page_rests(chromium):
    page = chromium.new_page()
    page.set_content("<div data-testid=stApp data-test-script-state=running data-test-connection-state=CONNECTED></div>")
    page.evaluate(
        """() => {
            const app = document.querySelector('[data-testid=stApp]');
            setTimeout(() => app.setAttribute('data-test-script-state', 'notRunning'), 300);
            setTimeout(() => { app.textContent = 'late'; }, 500);
        }"""
    )
    settle(page)
    assert page.locator("[data-testid=stApp]").inner_text() == "late"
    page.close()
