"""Which tests run on one worker of pytest-xdist, because they share what takes long to start.

xdist's own mark `xdist_group` needs attributes that pytest 9.2 no longer has: it ignores the groups without a warning.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from xdist.scheduler import LoadScopeScheduling

# pattern of file names, the first that matches: what the tests share. A second Spark session would take twenty
# core-seconds until it has loaded what the first one has
GROUPS: Final = {
    "tests/spark/*": "a Spark session",
    "tests/docs/test_spark_page.py": "a Spark session",
    "tests/browser/*": "a browser",
    "tests/docs/test_site.py": "a built site",
    "tests/docs/test_demo_picture.py": "a picture",
    "tests/interop/security/test_client_security.py": "a Kafka with secured listeners",
    "tests/interop/acl_apis/test_acl_apis.py": "a recorded scenario",
    "tests/interop/config_apis/test_config_apis.py": "the cluster-wide configs of a Kafka",
    "tests/interop/group_protocols/test_group_protocols.py": "the cluster-wide configs of a Kafka",
    "tests/packaging/test_wheel.py": "a wheel and its environments",
    "tests/packaging/test_builds.py": "a wheel and its environments",
    "tests/packaging/test_containers.py": "containers",
}

# what takes long and has few tests. Begun last, it would keep one worker busy when the others have ended. Tests that
# load the machine for long are not here: they would run beside one another
LONG: Final = (
    "a Spark session",
    "containers",
    "a wheel and its environments",
    "tests/cluster/test_streams.py",
    "tests/interop/client_suites/*",
    "tests/interop/test_consumer_protocol.py",
    "tests/docs/test_readme.py",
)


class Groups(LoadScopeScheduling):
    """Gives all tests of a group to one worker, every other test to the next free one; what is large or long first."""

    def schedule(self) -> None:
        super().schedule()
        for scope in [scope for scope in self.workqueue if is_long(scope)]:
            self.workqueue.move_to_end(scope, last=False)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((group for pattern, group in GROUPS.items() if fnmatchcase(file, pattern)), nodeid)


def is_long(scope: str) -> bool:
    """Whether a group, or a test of none, is to be begun early."""
    return any(fnmatchcase(scope.partition("::")[0], pattern) for pattern in LONG)
