"""What a reader sees: the site and reports in a browser, on a desk and on a telephone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from browser import WIDTHS, look, run_script
from report_runs import MakeRun

from ssdlab.report import write_html

pytestmark = pytest.mark.pages
EXPERIMENTS = ("aging", "stripe", "fsync", "suite")


@pytest.fixture
def reports(environment: dict[str, str], tmp_path: Path) -> list[Path]:
    """Reports of quick runs on a twin, one of each experiment."""

    def printed(*words: str) -> str:
        done = subprocess.run(
            ["ssdlab", *words], cwd=tmp_path, env=environment, capture_output=True, check=True
        )
        return done.stdout.decode()

    pages = []
    for name in EXPERIMENTS:
        words = ("run", name, "twin:toshiba-xg5", "--quick", "--quiet", "--json")
        run = json.loads(printed(*words))["folder"]
        pages.append(tmp_path / f"{name}.html")
        printed("report", run, "--html", str(pages[-1]))
    return pages


def test_no_page_of_the_site_is_empty_too_wide_or_without_an_image(
    site: Path, tmp_path: Path
) -> None:
    pages = sorted(page for page in site.rglob("*.html") if "genindex" not in page.name)
    seen, console = look(pages, tmp_path)
    assert len(seen) == len(WIDTHS) * len(pages) > 80
    assert not console
    assert [each for each in seen if each.letters < 200 or each.beyond or each.missing] == []
    desk = [each for each in seen if each.width == max(WIDTHS)]
    assert [(each.page, each.cut) for each in desk if each.cut] == []


def test_reports_fit_a_desk_and_a_telephone(reports: list[Path], tmp_path: Path) -> None:
    seen, console = look(reports, tmp_path)
    assert len(seen) == len(WIDTHS) * len(EXPERIMENTS)
    assert not console
    assert [each for each in seen if each.letters < 500 or each.beyond or each.missing] == []


def test_the_page_of_a_checkup_fits_a_desk_and_a_telephone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    page = tmp_path / "checkup.html"
    words = ["checkup", "twin:toshiba-xg5", "--capacity", "1GiB", "--quiet", "--html", str(page)]
    done = subprocess.run(
        ["ssdlab", *words], cwd=tmp_path, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 1, done.stderr
    seen, console = look([page], tmp_path)
    assert len(seen) == len(WIDTHS)
    assert not console
    assert [each for each in seen if each.letters < 5000 or each.beyond] == []


POINT = """<!doctype html><meta charset="utf-8"><body><iframe src="PAGE" width="1280" height="900">
</iframe><script>
frames[0].frameElement.onload = () => {
  const inside = frames[0].document, figure = inside.querySelector("svg[data-values]");
  const [[x, y]] = JSON.parse(figure.dataset.values)[1], box = figure.getBoundingClientRect();
  const scale = box.width / figure.viewBox.baseVal.width, seen = [];
  const look = (event, far) => {
    const at = { clientX: box.left + x * scale + far, clientY: box.top + y * scale };
    figure.dispatchEvent(new frames[0].PointerEvent(event, at));
    const tip = inside.querySelector(".tip");
    seen.push(tip.hidden ? "" : tip.textContent);
  };
  look("pointermove", 3);
  look("pointerleave", 0);
  look("pointermove", -500);
  document.body.innerHTML = "<pre id=seen></pre>";
  document.getElementById("seen").textContent = JSON.stringify(seen);
};
</script>"""


def test_a_figure_shows_the_value_at_the_pointer(make_run: MakeRun, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_html([make_run()], page)
    seen, console = run_script(POINT.replace("PAGE", page.as_uri()), tmp_path)
    assert not console
    near, left, far = seen
    assert "read speed, MiB/s: 2155" in near
    assert "random writes, share of the file size: 0" in near
    assert (left, far) == ("", "")


def test_what_is_wrong_with_a_page_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<p style='width: 2000px'>wide</p><img src='none.png'><pre style='overflow: hidden'>"
        f"{'x' * 900}</pre><script>console.error('broken')</script>"
    )
    (desk, _), console = look([page], tmp_path)
    assert desk.letters < 2000
    assert desk.beyond > 700
    assert desk.missing == ["none.png"]
    assert desk.cut
    assert "broken" in " ".join(console)
