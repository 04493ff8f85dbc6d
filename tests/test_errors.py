"""The exception tree: what a program may catch, and what it costs."""

import pickle

import pytest

from ssdlab.errors import DeviceFailure, Interrupted, SsdlabError, TargetError, UsageError


def test_each_error_is_an_ssdlab_error_and_a_bad_target_is_a_wrong_use() -> None:
    for kind in (UsageError, TargetError, DeviceFailure, Interrupted):
        assert issubclass(kind, SsdlabError)
    assert issubclass(TargetError, UsageError)
    assert not issubclass(DeviceFailure, UsageError)


def test_wrong_use_ends_with_status_2_and_an_interruption_with_3() -> None:
    assert UsageError("x").exit_status == TargetError("x").exit_status == 2
    assert Interrupted("x").exit_status == 3


@pytest.mark.parametrize("kind", [UsageError, TargetError, DeviceFailure, Interrupted])
def test_a_message_is_one_line_even_when_a_file_name_is_two(kind: type[SsdlabError]) -> None:
    assert str(kind("/tmp/a\nb is missing")) == "/tmp/a\\nb is missing"


def test_an_error_survives_the_way_to_another_process() -> None:
    copy = pickle.loads(pickle.dumps(TargetError("gone")))
    assert (type(copy), str(copy)) == (TargetError, "gone")
