"""What pyproject.toml cannot say: files of other folders that a wheel has inside the package."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
# Folder inside the package, the folder from which its files are taken, and their pattern.
CARRIED = (
    ("configs", ROOT / "configs", "**/*.toml"),
    ("reference", ROOT / "runs" / "reference", "*__*/policy.pt"),
    ("reference", ROOT / "runs" / "reference", "*__*/against_dumbbot.json"),
)


class BuildPackage(build_py):
    """Also copies settings files and ready policies; an editable install finds them here."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for folder, source, pattern in CARRIED:
            for file in sorted(source.glob(pattern)):
                target = Path(self.build_lib, "diplomacy_engine", folder, file.relative_to(source))
                self.mkpath(str(target.parent))
                self.copy_file(str(file), str(target))


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildPackage})
