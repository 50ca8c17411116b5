"""A server that others can reach shows nothing to a browser without its token."""

from copy import copy
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.web

TOKEN = "a token & more?"


@pytest.fixture(scope="module")
def guarded(serve: Any) -> Any:
    return serve("--model", "lexical", "--host", "0.0.0.0", "--token", TOKEN)


def sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    with page.expect_navigation():
        page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("path", ["/", "/question?id=d01", "/label", "/compare", "/no/such/page"])
def test_a_browser_without_the_token_sees_the_form_alone(visit: Any, guarded: Any, path: str) -> None:
    page: Page = visit(guarded, path)
    expect(page.get_by_role("heading", level=1)).to_have_text("Enter the access token")
    expect(page.get_by_label("Token")).to_be_visible()
    assert "symphony" not in page.content()


def test_a_wrong_token_is_refused_and_the_right_one_leads_in(visit: Any, guarded: Any) -> None:
    page: Page = visit(guarded)
    sign_in(page, TOKEN + "x")
    expect(page.get_by_role("alert")).to_have_text("this is not the access token.")
    page.goto(guarded.address)
    expect(page.get_by_role("heading", level=1)).to_have_text("Enter the access token")
    sign_in(page, TOKEN)
    expect(page.locator(".questions .entry")).to_have_count(14)
    page.get_by_role("link", name="Label", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Label")


def test_a_token_in_the_address_becomes_a_cookie_and_leaves_the_address(visit: Any, guarded: Any) -> None:
    page: Page = visit(guarded, "/question?id=d02&token=a+token+%26+more%3F&chain=2")
    assert page.url == f"{guarded.address}/question?id=d02&chain=2"
    expect(page.locator("#chain-heading")).to_have_text("Candidate 2")
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax"
    assert page.evaluate("document.cookie") == ""
    page.goto(f"{guarded.address}/label")
    expect(page.get_by_role("heading", level=1)).to_have_text("Label")


def test_a_link_is_copied_over_plain_http(visit: Any, guarded: Any) -> None:
    elsewhere = copy(guarded)
    elsewhere.address = f"http://rechain.test:{guarded.port}"
    page: Page = visit(elsewhere, "/question?id=d02")
    sign_in(page, TOKEN)
    assert page.evaluate("[isSecureContext, navigator.clipboard]") == [False, None]  # as for whoever is not on it
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".share")).to_have_text("Copied")
    copied = page.url
    page.goto(copied.replace("/question?id=d02", "/try"))
    field = page.locator("textarea, input:not([type=hidden])").first
    field.focus()
    page.keyboard.press("Control+V")
    expect(field).to_have_value(copied)
