"""What is read of pytest's reports."""

from pathlib import Path

from scripts.ci.junit import read_summary

REPORT = """
<testsuites><testsuite>
  <testcase classname="tests.unit.test_a" name="test_passes[1]"/>
  <testcase classname="tests.unit.test_a" name="test_passes[2]"/>
  <testcase classname="tests.unit.test_a" name="test_is_skipped"><skipped message="no"/></testcase>
  <testcase classname="tests.unit.test_a" name="test_fails">
    <failure message="assert 1 == 2&#10; where 1 = one()">the traceback</failure>
  </testcase>
  <testcase classname="tests.unit.test_a" name="test_leaks"/>
  <testcase classname="tests.unit.test_a" name="test_leaks">
    <error message="failed on teardown with &quot;left a thread&quot;">the traceback</error>
  </testcase>
</testsuite></testsuites>
"""


def test_tests_are_counted_once(tmp_path: Path) -> None:
    file = tmp_path / "report.xml"
    file.write_text(REPORT.strip())
    run = read_summary(file)
    assert (run.ran, run.skipped) == (4, 1)
    assert run.failures == {
        "tests.unit.test_a::test_fails": "assert 1 == 2",
        "tests.unit.test_a::test_leaks": 'failed on teardown with "left a thread"',
    }
