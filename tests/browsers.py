"""A browser for tests, if the machine has one."""

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="no Playwright: pages are not opened in a browser")
    paths = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
    if not (path := next(paths, None)):
        pytest.skip("no Chromium on this machine: pages are not opened in a browser")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
