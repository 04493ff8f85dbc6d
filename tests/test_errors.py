"""The exception tree and its exit statuses."""

import pickle

import pytest

from ssdlab.errors import DeviceFailure, Interrupted, SsdlabError, TargetError, UsageError


def test_each_error_is_an_ssdlab_error_and_a_target_error_is_a_usage_error() -> None:
    for kind in (UsageError, TargetError, DeviceFailure, Interrupted):
        assert issubclass(kind, SsdlabError)
    assert issubclass(TargetError, UsageError)
    assert not issubclass(DeviceFailure, UsageError)


def test_a_usage_error_has_exit_status_2_and_an_interruption_3() -> None:
    assert UsageError("x").exit_status == TargetError("x").exit_status == 2
    assert Interrupted("x").exit_status == 3


@pytest.mark.parametrize("kind", [UsageError, TargetError, DeviceFailure, Interrupted])
def test_a_newline_in_a_file_name_is_escaped(kind: type[SsdlabError]) -> None:
    assert str(kind("/tmp/a\nb is missing")) == "/tmp/a\\nb is missing"


def test_an_error_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(TargetError("gone")))
    assert (type(copy), str(copy)) == (TargetError, "gone")
