"""The page of the studio: what is in the file, and what a browser makes of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import WIDTHS, look, run_script
from studio_page import data_of

from ssdlab import profiles
from ssdlab.studio import SCENES

pytestmark = pytest.mark.pages
SIZE_MAX = 3_000_000
FRAMES = 1000
DEPTH_MOST = 100
MORE = "other=victim:greedy&steps=f_r0.5_u_i10_c"


def test_the_page_is_one_file_of_at_most_three_megabytes(running_page: str) -> None:
    assert len(running_page.encode()) <= SIZE_MAX


def test_the_page_loads_nothing(page: str) -> None:
    markup = page.replace(data_of(page), "")
    assert not re.findall(r"https?://|\bsrc=|<link|@import|url\(|\bfetch\(|XMLHttpRequest", markup)


def test_texts_of_the_data_cannot_end_its_element(page: str) -> None:
    assert "<" not in data_of(page)


def test_the_page_has_all_profiles(data: dict[str, Any]) -> None:
    assert set(data["profiles"]) == set(profiles.names())


def test_every_scene_ends_with_the_numbers_of_the_command_line(
    running_page: str, tmp_path: Path
) -> None:
    scenes, console = run_script(running_page, tmp_path, "#selftest=scenes")
    assert not console
    assert [scene["name"] for scene in scenes] == list(SCENES)
    for scene in scenes:
        assert scene["fault"] == ""
        assert scene["ended"]
        assert scene["differences"] == [], scene["name"]
        assert scene["counters"] > 20
        assert scene["jobs"] > 5
        drawn, programmed = scene["curve"]
        assert drawn == programmed > 0
        assert scene["says"].startswith("Equal to the command line.")
    [power] = [scene for scene in scenes if scene["name"] == "power"]
    unflushed, flushed = power["lost"]
    assert unflushed["lost_units"] > 0
    assert flushed["lost_units"] == 0


def test_another_number_on_the_command_line_is_an_error(running_page: str, tmp_path: Path) -> None:
    data = json.loads(data_of(running_page))
    data["scenes"][0]["drives"][0]["counters"]["host_reads"] += 1
    data["scenes"][1]["drives"][0]["ends"][3][2] += 1
    changed = json.dumps(data).replace("<", "\\u003c")
    page = running_page.replace(data_of(running_page), changed)
    scenes, _ = run_script(page, tmp_path, "#selftest=scenes")
    reads, end, *others = (scene["differences"] for scene in scenes)
    assert len(reads) == len(end) == 1
    assert "host_reads" in reads[0]
    assert "end of job 3" in end[0]
    assert scenes[0]["says"].startswith("Not equal to the command line")
    assert others == [[]] * len(others)


def test_sums_of_what_is_drawn_equal_the_counters(running_page: str, tmp_path: Path) -> None:
    found, console = run_script(running_page, tmp_path, "#selftest=frames")
    assert not console
    assert found["differences"] == []
    assert found["frames"] >= FRAMES
    assert found["moved"] > FRAMES / 10


def test_going_back_and_on_again_gives_the_same_state(running_page: str, tmp_path: Path) -> None:
    seeks, console = run_script(running_page, tmp_path, "#selftest=seeks")
    assert not console
    assert [seek for seek in seeks if not (seek["equal"] and seek["differs"])] == []
    assert len(seeks) == len(SCENES)


@pytest.mark.parametrize(
    ("link", "at", "shown"),
    [
        (
            "scene=trim&speed=3&colour=erases&theme=dark",
            70_000,
            {
                "scene": "trim",
                "colour": "erases",
                "theme": "dark",
                "pace": "100 µs a second",
                "title": "With and without TRIM",
            },
        ),
        (
            f"free=&profile=samsung-840-pro&capacity={128 << 20}&spare=0.15&victim=fifo&{MORE}",
            5000,
            {
                "scene": None,
                "steps": [
                    "write all in order",
                    "random writes, 4 KiB: 50 % of the capacity",
                    "flush",
                    "leave idle: 10 seconds",
                    "cut the power",
                ],
            },
        ),
    ],
)
def test_a_link_has_the_whole_state(
    running_page: str, tmp_path: Path, link: str, at: int, shown: dict[str, Any]
) -> None:
    seen, console = run_script(running_page, tmp_path, f"#selftest=link&{link}&at={at}")
    assert not console
    assert seen["fault"] == ""
    assert {name: seen[name] for name in shown} == shown
    assert at <= seen["at"] < at + DEPTH_MOST  # commands can complete at the same time
    # The address that the page writes leads to the same state.
    again, _ = run_script(running_page, tmp_path, f"#selftest=link&{seen['link'][1:]}")
    assert again == seen


def test_two_drives_differ_in_one_setting(running_page: str, tmp_path: Path) -> None:
    link = "free=&profile=toshiba-xg5&capacity=268435456&other=spare:0.28&steps=f_r1"
    seen, _ = run_script(running_page, tmp_path, f"#selftest=link&{link}")
    (_, first), (name, second) = seen["drives"]
    assert name == "spare: 28 %"
    assert first["capacity_bytes"] == second["capacity_bytes"]
    assert first["spare"] < 0.08
    assert second["spare"] == pytest.approx(0.28, abs=0.01)


def test_two_drives_have_one_time_axis(running_page: str, tmp_path: Path) -> None:
    link = "free=&profile=toshiba-xg5&capacity=134217728&other=spare:0.28&steps=f_r1_i1_r0.5"
    seen, console = run_script(running_page, tmp_path, f"#selftest=pair&{link}")
    assert not console
    assert seen["behind"] == 0, "a drive at work is at the moment of the page in each frame"
    slow, fast = seen["ends"]
    assert fast < slow, "more spare is faster"
    done = [frame[1][0] for frame in seen["frames"]]
    assert any(done[:-1]), "the faster drive is done while the slower one is at work"
    ahead = [fast[1] - slow[1] for slow, fast in seen["frames"]]
    assert max(ahead) > 1000, "which is thousands of commands behind"
    # Its curves end earlier on the axis, in proportion to the commands of the slower drive.
    assert seen["places"][0] == pytest.approx(seen["total"])
    assert seen["places"][1] < 0.95 * seen["total"]
    assert seen["clocks"][1].startswith("done at ")
    # Going to the middle gives both drives the same moment.
    moment, (slow_line, slow_requests), (fast_line, fast_requests) = seen["half"]
    assert slow_line == moment
    assert fast_line >= moment
    assert slow_requests < fast_requests


def test_a_twin_that_cannot_be_made_is_one_line(running_page: str, tmp_path: Path) -> None:
    link = "free=&profile=toshiba-xg5&capacity=1048576&steps=f"
    seen, console = run_script(running_page, tmp_path, f"#selftest=link&{link}")
    assert not console
    assert "drive.capacity" in seen["fault"]
    assert seen["drives"] == []


def test_the_keyboard_reaches_and_does_everything(running_page: str, tmp_path: Path) -> None:
    keys, console = run_script(running_page, tmp_path, "#selftest=keys")
    assert not console
    assert (keys["start"], keys["right"], keys["left"]) == (50, 51, 50)
    assert keys["playing"]
    assert keys["stopped"]
    assert keys["home"] == 0
    assert keys["end"] > 20_000
    assert {"play", "back", "forward", "scrub", "speed", "colour", "theme"} <= {
        name for name, _ in keys["reachable"]
    }
    assert [name for name, index in keys["reachable"] if index < 0] == []


def test_the_page_fits_a_desk_and_a_telephone(running_page: str, tmp_path: Path) -> None:
    path = tmp_path / "studio.html"
    path.write_text(running_page)
    seen, console = look([path], tmp_path)
    assert not console
    assert len(seen) == len(WIDTHS)
    assert [each for each in seen if each.letters < 1000 or each.beyond] == []
