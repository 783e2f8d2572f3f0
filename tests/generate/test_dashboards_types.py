"""The dashboards against Grafana's own TypeScript types: no key that Grafana does not know, no word that it refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from generate.dashboard_files import FILES, ROOT, TEXTS
from specbudget.catalog.alerts import Dashboard

pytestmark = pytest.mark.slow

CACHE = ROOT / ".cache" / "grafana-schema"
HEAD = """
import type { AnnotationQuery, Dashboard, DataQuery } from '@grafana/schema';

// JSON holds the values of enumerations, not their names
type Plain<T> = T extends string ? `${T}`
  : T extends (infer U)[] ? Plain<U>[]
  : T extends object ? { [K in keyof T]: Plain<T[K]> }
  : T;

// what Grafana's Prometheus data source reads of an annotation besides
interface PrometheusTarget extends DataQuery { expr: string }
interface PrometheusMark extends Omit<AnnotationQuery, 'target'> {
  expr: string; target: PrometheusTarget;
  titleFormat?: string; textFormat?: string; tagKeys?: string; useValueForTime?: boolean;
}
type Checked = Plain<Omit<Dashboard, 'annotations'> & { annotations?: { list?: PrometheusMark[] } }>;
"""
SETTINGS = {
    "compilerOptions": {
        "strict": True, "noEmit": True, "skipLibCheck": True, "types": [],
        "module": "esnext", "moduleResolution": "bundler", "target": "es2022",
    },
    "include": ["*.ts"],
}  # fmt: skip


@pytest.fixture(scope="module")
def schema() -> Path:
    """The folder of Grafana's types and the compiler; without npm the test is skipped, in a pipeline it fails."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        missing = "npm and node are not there: Grafana's types cannot be fetched"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    subprocess.run([ROOT / "scripts" / "fetch-grafana-schema.sh"], check=True, timeout=300)
    return CACHE


def compiled(schema: Path, folder: Path, texts: dict[str, str]) -> str:
    """What the compiler has to say of dashboards, as literals: only there it looks for keys that it does not know."""
    for name, text in texts.items():
        (folder / f"{name}.ts").write_text(f"{HEAD}export const dashboard: Checked = {text};\n")
    (folder / "tsconfig.json").write_text(json.dumps(SETTINGS))
    (folder / "node_modules").symlink_to(schema / "node_modules")
    compiler = schema / "node_modules" / ".bin" / "tsc"
    done = subprocess.run([compiler, "-p", "."], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout + done.stderr


def test_grafana_knows_every_key_and_word(schema: Path, tmp_path: Path) -> None:
    """All four compile as a Dashboard of @grafana/schema."""
    assert compiled(schema, tmp_path, {str(each): TEXTS[each] for each in Dashboard}) == ""


def test_what_grafana_does_not_know_is_found(schema: Path, tmp_path: Path) -> None:
    """A key of our own, a threshold mode that there is none of, a place without a width: each is told."""
    wrong = {}
    for name, change in (
        ("key", lambda panel: panel.update(ours=1)),
        ("word", lambda panel: panel["fieldConfig"]["defaults"]["thresholds"].update(mode="relative")),
        ("place", lambda panel: panel["gridPos"].update(w="wide")),
    ):
        dashboard = json.loads(json.dumps(FILES[Dashboard.STARTUP]))
        change(dashboard["panels"][0])
        wrong[name] = json.dumps(dashboard)
    said = compiled(schema, tmp_path, wrong)
    assert all(f"{name}.ts" in said for name in wrong), said
