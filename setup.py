"""What pyproject.toml cannot say: files of other folders that a wheel has inside the package."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
# Folder inside the package -> pattern and the folder from which its files are taken.
CARRIED = {
    "configs": ("**/*.toml", ROOT / "configs"),
    "reference": ("*__*__*/policy.pt", ROOT / "runs" / "reference"),
}


class BuildPackage(build_py):
    """Also copies settings files and ready policies; an editable install finds them here."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for folder, (pattern, source) in CARRIED.items():
            for file in sorted(source.glob(pattern)):
                target = Path(self.build_lib, "diplomacy_engine", folder, file.relative_to(source))
                self.mkpath(str(target.parent))
                self.copy_file(str(file), str(target))


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildPackage})
