"""What a test asks of a page that is open in the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

READABLE = 4.5
#: Contrast of every coloured piece with what is behind it, by the formula of WCAG 2. Colours are read through a canvas,
#: because browsers give them in any notation.
_CONTRAST = """
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) {
      layers.unshift(rgba(getComputedStyle(each).backgroundColor));
    }
    return layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, index) => sum + c * [0.2126, 0.7152, 0.0722][index], 0);
  const shown = [...document.querySelectorAll("#content *")].filter((element) =>
    !element.closest("[hidden], .hf-hidden, svg, .hf-star, .material-symbols-outlined") && element.checkVisibility() &&
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim()));
  return shown.map((element) => {
    const back = behind(element);
    const front = over(rgba(getComputedStyle(element).color), back);
    const [high, low] = [light(front), light(back)].sort((a, b) => b - a);
    return [element.className, element.textContent.trim().slice(0, 30), (high + 0.05) / (low + 0.05)];
  });
}
"""

_NAMELESS = """
() => ["input:not([type=hidden])", "textarea", "select"]
  .flatMap((kind) => [...document.querySelectorAll(`#content ${kind}`)])
  .filter((field) => field.checkVisibility() && !field.labels?.length && !field.ariaLabel)
  .map((field) => field.outerHTML)
"""

_CUT = """
() => [...document.querySelectorAll("#result_list [data-label]")]
  .filter((cell) => cell.checkVisibility() && cell.scrollHeight > cell.clientHeight + 1)
  .map((cell) => cell.textContent.trim().slice(0, 60))
"""


def faint(page: Page) -> list[list[object]]:
    """Texts of the page whose contrast is too low: their class, beginning and contrast."""
    page.wait_for_timeout(400)  # colours fade in
    return [found for found in page.evaluate(_CONTRAST) if found[2] < READABLE]


def nameless(page: Page) -> list[str]:
    """Fields of the page without a name for screen readers."""
    found: list[str] = page.evaluate(_NAMELESS)
    return found


def width(page: Page) -> int:
    """How wide the page is, also where it has to be scrolled for."""
    found: int = page.evaluate("document.documentElement.scrollWidth")
    return found


def cut(page: Page) -> list[str]:
    """Cells of a list that hide a part of their text."""
    found: list[str] = page.evaluate(_CUT)
    return found
