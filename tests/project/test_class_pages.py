"""The pages for instructors: the plans of a term and the answer key are computed, and say what the course says."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from click.testing import CliRunner
from course_parts import PARTS
from docutils.nodes import make_id
from places import ROOT

from miniquant.cli import main
from miniquant.core.errors import MiniquantError
from miniquant.lab import exercises
from miniquant.lab.authoring.answer_key import key_of_lab
from miniquant.lab.authoring.course import all_labs
from miniquant.lab.authoring.weeks import SOURCE, hours, read_plans, rows

PLANS = read_plans(ROOT)
LABS = all_labs(PARTS)


def test_there_are_plans_of_6_and_12_weeks():
    assert list(PLANS) == [6, 12]


def test_the_long_plan_has_every_lab_once_and_the_short_one_ends_with_the_students_file_in_llama_cpp():
    assert [lab.number for week in PLANS[12].weeks for lab in week.labs] == [lab.number for lab in LABS]
    short = [lab.subject for week in PLANS[6].weeks for lab in week.labs]
    assert short[-1] == "gguf_blocks"


@pytest.mark.parametrize("weeks", [6, 12])
def test_a_lab_comes_after_those_that_it_builds_on_and_a_week_has_three_hours_at_most(weeks):
    done = set()
    for week in PLANS[weeks].weeks:
        for lab in week.labs:
            assert set(lab.after) <= done, f"lab {lab.number} needs {set(lab.after) - done}"
            done.add(lab.number)
        assert week.minutes <= 180


@pytest.mark.parametrize("weeks", [6, 12])
def test_the_table_of_a_plan_tells_the_time_of_its_labs(weeks):
    head, _, *lines = rows(PLANS[weeks], "../notebooks")
    assert len(lines) == weeks
    for week, line in zip(PLANS[weeks].weeks, lines):
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        assert len(cells) == len(head.strip("| ").split(" | "))
        assert cells[2] == hours(sum(lab.time.total for lab in week.labs))
        assert f"{sum(lab.time.exercises for lab in week.labs)} exercises" in cells[4]
        assert all(f"](../notebooks/{lab.file})" in cells[1] for lab in week.labs)


def test_the_site_shows_both_plans_and_the_key():
    page = (ROOT / "book/plan.md").read_text("utf-8")
    assert "```{plan} 6\n" in page and "```{plan} 12\n" in page
    assert "```{key}\n" in (ROOT / "book/answer-key.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"qat"]', '"nothing"]', "does not have"),
        ('"qat"]', '"mixed_precision"]', "twice"),
        ('labs = ["int8", "int4"]', 'labs = ["int4", "int8"]', "comes later"),
    ],
)
def test_a_plan_with_a_lab_that_is_none_that_is_there_twice_or_too_early_is_refused(tmp_path, old, new, message):
    for folder in ("book", "solutions"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "book/course.toml", tmp_path / "book")
    for path in (ROOT / "solutions").glob("*.ipynb"):
        (tmp_path / "solutions" / path.name).symlink_to(path)
    text = (ROOT / SOURCE).read_text("utf-8")
    assert old in text
    (tmp_path / SOURCE).write_text(text.replace(old, new), "utf-8")
    with pytest.raises(MiniquantError, match=message):
        read_plans(tmp_path)


def test_the_key_names_every_exercise_its_solution_and_mistakes_as_a_check_prints_them():
    lab = next(lab for lab in LABS if lab.subject == "writer")
    specs = exercises().of_lab("writer")
    text = "\n".join(key_of_lab(lab, specs, ".."))
    for spec in specs:
        source = f"src/miniquant/lessons/writer/{spec.name}.py"
        assert source in text and (ROOT / source).is_file()
        first = spec.mistakes[0]
        assert f"* {first.name}: {first.cause} *Cure:* {first.cure}" in text
        assert f"* and {len(spec.mistakes) - 3} more" in text


def test_the_key_leads_to_the_heading_of_each_exercise_in_its_solved_lab():
    for lab in LABS:
        cells = json.loads((ROOT / "solutions" / lab.file).read_text("utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        headings = {make_id(title) for title in re.findall(r"^#{2,3} (.*)$", text, re.M)}
        lines = key_of_lab(lab, exercises().of_lab(lab.subject), "..")
        assert set(re.findall(r"ipynb#([\w-]+)\)", "\n".join(lines))) <= headings, lab.number


def test_the_command_prints_the_key_of_a_lab_with_all_mistakes():
    done = CliRunner().invoke(main, ["key", "9", "--root", str(ROOT)])
    assert done.exit_code == 0, done.output
    assert done.output.count("*Cure:*") == sum(len(spec.mistakes) for spec in exercises().of_lab("writer"))
    assert done.output.startswith("# Lab 09: ")
