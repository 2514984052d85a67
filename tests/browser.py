"""A headless Chromium without network, for tests of pages that need nothing but themselves."""

import contextlib
import shutil

import pytest

SWITCHES = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,1000",
)


@contextlib.contextmanager
def offline_chromium(folder):
    """A Selenium driver whose profile is in the new, empty `folder`; the test is skipped where there is no browser."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip(f"{'chromium' if browser is None else 'chromedriver'} is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for switch in (*SWITCHES, f"--user-data-dir={folder}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chromium = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        chromium.execute_cdp_cmd("Network.enable", {})
        offline = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        chromium.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
        yield chromium
    finally:
        chromium.quit()


def open_page(chromium, path):
    """Load a file afresh and forget what the console said before; a large one is there in parts at first."""
    from selenium.webdriver.support.wait import WebDriverWait

    chromium.get("about:blank")
    chromium.get_log("browser")
    chromium.get(path.resolve().as_uri())
    whole = "return location.href !== 'about:blank' && document.readyState === 'complete'"
    WebDriverWait(chromium, 60).until(lambda page: page.execute_script(whole))


def messages(chromium):
    """The messages of the console since the last call."""
    return [f"{entry['level']}: {entry['message']}" for entry in chromium.get_log("browser")]
