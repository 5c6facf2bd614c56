"""Take docs/dashboard.png: what TensorBoard shows of a run.

    pip install -r requirements.txt -e '.[dev]'
    python docs/drawing/dashboard_picture.py runs/small__...

Needs Chromium. The run's own layout (custom scalars) must be there: any run of this version has it.
"""

import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

TARGET = Path(__file__).parents[2] / "docs" / "dashboard.png"


def main(folder: str) -> None:
    """Start TensorBoard on a run folder, and photograph it."""
    run = Path(folder).resolve()
    # A folder's name alone: the page shows it, and no picture shows a path of this machine.
    words = ["-m", "tensorboard.main", "--logdir", run.parent.name, "--port", "0"]
    server = subprocess.Popen(
        [sys.executable, *words], cwd=run.parent.parent, stderr=subprocess.PIPE, text=True
    )
    try:
        address = next(
            found[0] for line in server.stderr if (found := re.search(r"http://\S+", line))
        )
        shown = f"&regexInput={run.name.rpartition('__')[-1]}&_smoothingWeight=0"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"),
                args=["--no-sandbox", "--disable-dev-shm-usage"],
            )
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.goto(f"{address}?darkMode=false#custom_scalars{shown}", timeout=120_000)
            page.wait_for_selector("text=evaluation", timeout=120_000)
            page.wait_for_timeout(8_000)  # the curves are drawn one after the other
            picture = page.screenshot()
            browser.close()
    finally:
        server.terminate()
        server.wait()
    image = Image.open(io.BytesIO(picture)).convert("RGB").resize((1050, 750), Image.LANCZOS)
    image.quantize(64, dither=Image.Dither.NONE).save(TARGET, optimize=True)
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
