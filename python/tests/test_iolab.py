"""The package against the program: the same numbers. Needs the program in $IOLAB or installed; with and without pandas.

    IOLAB=$PWD/target/debug/iolab PYTHONPATH=$PWD/python python3 -m unittest discover python/tests
"""

import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import iolab

try:
    import pandas
except ImportError:
    pandas = None


def rows(frame):
    """Rows as dicts, missing values as None."""
    return frame if pandas is None else json.loads(frame.to_json(orient="records", double_precision=15, date_format="iso"))


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        # Modelled disks: nothing is written, and each run takes no time.
        one = ["run", "read-random", "model:sata-ssd", "--bs", "1M,4k,64k", "--set", "threads=1,2", "-o", "one.iolab"]
        two = ["run", "write-random", "model:sata-7200", "--bs", "4k,64k", "--budget", "30s", "-o", "two.iolab"]
        for words in one, two:
            subprocess.run([iolab.program(), *words], cwd=cls.folder, check=True, capture_output=True)
        cls.one = iolab.read(cls.folder / "one.iolab")
        cls.both = iolab.read(cls.folder)

    def printed(self, *words):
        done = subprocess.run([iolab.program(), *words], cwd=self.folder, check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def test_samples_are_those_of_the_export(self):
        exported = self.printed("export", "--format", "json", "one.iolab", "two.iolab")
        found = rows(self.both.samples)
        self.assertEqual(len(found), len(exported))
        for row, other in zip(found, exported):
            for name in ("run", "sample", "bs_bytes", "warmup", "served_by", "level_bs", "read_requests"):
                self.assertEqual(row[name], other[name], name)
            self.assertAlmostEqual(row["throughput_mb_s"], other["throughput_mb_s"], delta=1e-9 * row["throughput_mb_s"])

    def test_cells_and_claims_are_those_of_the_table(self):
        table = self.printed("table", "--format", "json", "one.iolab")
        found = rows(self.one.cells())
        self.assertEqual([row["cell"] for row in found], [row["cell"] for row in table["cells"]])
        for row, other in zip(found, table["cells"]):
            for name in ("throughput_mb_s_median", "throughput_mb_s_median_low", "precision"):
                self.assertAlmostEqual(row[name], other[name], delta=1e-9 * other[name])
        sentences = [claim["sentence"] for claim in self.one.claims()]
        self.assertEqual(sentences, [claim["sentence"] for claim in table["claims"]])
        self.assertTrue(sentences)

    def test_stored_run_files_have_the_numbers_of_the_table_and_the_export(self):
        stored = sorted((Path(__file__).parents[2] / "crates/runfile/tests/golden").glob("files/*.iolab.gz"))
        self.assertTrue(stored)
        with tempfile.TemporaryDirectory() as folder:
            for packed in stored:
                file = Path(folder) / packed.stem
                file.write_bytes(gzip.decompress(packed.read_bytes()))
                runs = iolab.read(file)
                with self.subTest(file.name):
                    table = self.printed("table", "--format", "json", file)
                    self.assert_same_rows(runs.cells(), table["cells"])
                    self.assertEqual(runs.claims(), table["claims"])
                    self.assert_same_rows(runs.samples, self.printed("export", "--format", "json", file))

    def assert_same_rows(self, frame, printed):
        """Each number and word of the program is in the frame; times are compared where they are used."""
        found = rows(frame)
        self.assertEqual(len(found), len(printed))
        for row, other in zip(found, printed):
            for name, value in other.items():
                if isinstance(value, float):
                    self.assertAlmostEqual(row[name], value, delta=1e-9 * abs(value), msg=name)
                elif not name.endswith("_utc") and not isinstance(value, (dict, list)):
                    self.assertEqual(row[name], value, name)

    def test_latencies_are_those_of_the_program(self):
        for row in rows(self.both.samples):
            operation = "read" if row["read_requests"] else "write"
            latency = self.both.latency(row["sample"], operation, run=row["run"])
            self.assertEqual(len(latency), row[f"{operation}_requests"])
            for name, q in {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1}.items():
                self.assertEqual(latency.quantile(q), row[f"{operation}_latency_{name}_ns"], name)
            mean = row[f"{operation}_latency_mean_ns"]
            self.assertAlmostEqual(latency.mean, mean, delta=1e-9 * mean)

    def test_buckets_are_those_of_the_export(self):
        exported = self.printed("export", "--histogram", "--format", "json", "one.iolab")
        first = exported[0]["sample"]
        expected = [(row["low_ns"], row["high_ns"], row["count"]) for row in exported if row["sample"] == first]
        self.assertEqual(list(self.one.latency(first).buckets()), expected)

    def test_histograms_add_up(self):
        a, b = (self.one.latency(sample) for sample in (1, 2))
        self.assertEqual(len(a + b), len(a) + len(b))
        self.assertEqual((a + b).max, max(a.max, b.max))

    def test_each_column_has_a_meaning(self):
        names = set(rows(self.one.samples)[0]) | set(rows(self.one.cells())[0])
        for name in names:
            self.assertTrue(self.one.meaning(name), name)
        with self.assertRaises(KeyError):
            self.one.meaning("speed")

    def test_what_is_wrong_is_said(self):
        with self.assertRaises(iolab.Error) as raised:
            iolab.read(self.folder / "none.iolab").cells()
        self.assertEqual(raised.exception.code, 2)
        with self.assertRaises(iolab.Error):
            iolab.read()
        with self.assertRaises(ValueError):
            self.both.latency(1)
        with self.assertRaises(KeyError):
            self.one.latency(1, "trim")
        with self.assertRaises(KeyError):
            self.one.latency(1_000_000)
        for blob in (b"", b"x" * 40, b"\x1c\x84\x93\x13" + b"\0" * 50):
            with self.assertRaises(ValueError):
                iolab.Histogram.decode(blob)

    @unittest.skipIf(pandas is None, "pandas is not installed")
    def test_the_examples_of_the_documentation_run(self):
        root = Path(__file__).parents[2]
        (guide,) = re.findall(r"```python\n(.*?)```", (root / "docs/INSTALL.md").read_text(encoding="utf-8"), re.DOTALL)
        readme = (root / "python/README.md").read_text(encoding="utf-8")
        readme = textwrap.dedent(readme[readme.index("    import iolab") :])
        # Also of runs without the usual factor, whose first trial writes.
        durable = ["run", "write-random", "model:nvme-970pro", "--bs", "4k", "--set", "sync=none,each", "-o", "three.iolab"]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([iolab.program(), *durable], cwd=folder, check=True, capture_output=True)
            for names in ["one.iolab", "two.iolab"], ["three.iolab"]:
                results = Path(folder) / "iolab-results"
                results.mkdir()
                for name in names:
                    shutil.copy((self.folder if name != "three.iolab" else Path(folder)) / name, results)
                claims = iolab.read(results).claims()
                for example in guide, readme:
                    done = subprocess.run([sys.executable, "-B", "-c", example], cwd=folder, capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    for claim in claims:
                        self.assertIn(claim["sentence"], done.stdout)
                    self.assertRegex(done.stdout, r"\d ns\n$")
                shutil.rmtree(results)

    @unittest.skipIf(pandas is None, "pandas is not installed")
    def test_frames_have_types_and_units(self):
        samples = self.one.samples
        self.assertEqual(list(samples.level_bs.cat.categories), ["4KiB", "64KiB", "1MiB"])
        self.assertTrue(samples.level_bs.cat.ordered)
        self.assertEqual(str(samples.run_started_utc.dt.tz), "UTC")
        self.assertEqual(str(samples.warmup.dtype), "boolean")
        self.assertEqual(str(samples.bs_bytes.dtype), "Int64")
        self.assertIn("MB/s", samples.attrs["columns"]["throughput_mb_s"])

    @unittest.skipIf(pandas is None, "pandas is not installed")
    def test_levels_have_an_order(self):
        # As they are named, and as the frame has them.
        for factor, named, expected in [
            ("thinktime", "1ms,20us,0.5ms", ["20us", "500us", "1ms"]),
            ("rate", "20MB/s,8MiB/s", ["8MiB/s", "20MB/s"]),
            ("pattern", "seq,rand,reverse", ["seq", "rand", "reverse"]),
        ]:
            with self.subTest(factor), tempfile.TemporaryDirectory() as folder:
                words = ["run", "read-random", "model:nvme-970pro", "--bs", "4k", "--set", f"{factor}={named}", "-o", "f.iolab"]
                subprocess.run([iolab.program(), *words], cwd=folder, check=True, capture_output=True)
                for frame in (runs := iolab.read(folder)).samples, runs.cells():
                    self.assertEqual(list(frame[f"level_{factor}"].cat.categories), expected)


if __name__ == "__main__":
    unittest.main()
