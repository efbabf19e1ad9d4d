#!/usr/bin/env python3
"""`./dev models` against an index of its own: what is right is laid out, and everything else is refused in words."""
import contextlib
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import unittest
import unittest.mock
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fetch  # noqa: E402: found by the line above


class Models(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        wheel = io.BytesIO()
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("net/models/finder.onnx", b"weights")
            archive.writestr("net/LICENSE", b"do as you like")
        self.wheel = wheel.getvalue()
        self.served = {"/simple/net/": json.dumps({"files": [{"filename": "net-1.whl", "url": "../../net-1.whl"}]}).encode(),
                       "/net-1.whl": self.wheel}
        self.asked = []
        self.entry = {"what": "it finds", "package": "net", "version": "1", "licence": "MIT", "wheel": "net-1.whl",
                      "sha256": hashlib.sha256(self.wheel).hexdigest(), "files": ["net/models/finder.onnx"],
                      "licence_files": ["net/LICENSE"]}
        test = self

        class Index(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                test.asked.append(self.path)
                body = test.served.get(self.path)
                self.send_response(200 if body is not None else 404)
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.index = f"http://127.0.0.1:{server.server_address[1]}/simple"
        self.folder = self.root / "models"

    def run_it(self, *arguments):
        (self.root / "models.json").write_text(json.dumps({"finder": self.entry}))
        out, err = io.StringIO(), io.StringIO()
        with unittest.mock.patch.dict(os.environ, {"PIP_INDEX_URL": self.index}), contextlib.redirect_stdout(out), \
                contextlib.redirect_stderr(err):
            try:
                code = fetch.main(["--folder", str(self.folder), "--models", str(self.root / "models.json"), *arguments])
            except SystemExit as end:
                code = end.code
        return code, out.getvalue(), err.getvalue()

    def laid_out(self):
        return sorted(path.name for path in self.folder.iterdir()) if self.folder.exists() else []

    def test_a_model_is_laid_out_with_its_licence_and_is_not_fetched_twice(self):
        code, out, _ = self.run_it()
        self.assertEqual(code, 0)
        self.assertIn("fetched into", out)
        self.assertEqual((self.folder / "finder.onnx").read_bytes(), b"weights")
        self.assertEqual((self.folder / "finder.LICENSE").read_bytes(), b"do as you like")
        asked = len(self.asked)
        code, out, _ = self.run_it("finder")
        self.assertEqual((code, len(self.asked)), (0, asked))
        self.assertIn("is there already", out)
        (self.folder / "finder.onnx").unlink()
        self.assertIn("fetched into", self.run_it()[1])

    def test_other_bytes_are_refused_and_leave_nothing(self):
        self.served["/net-1.whl"] = self.wheel[:-1] + b"\1"
        code, _, err = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn(self.entry["sha256"] + " was expected", err)
        self.assertEqual(self.laid_out(), [])

    def test_a_new_sum_in_the_list_fetches_again(self):
        self.run_it()
        self.entry["sha256"] = "0" * 64
        code, _, err = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("was expected", err)

    def test_a_version_that_is_gone_and_an_index_that_does_not_answer_are_said(self):
        self.served["/simple/net/"] = json.dumps({"files": []}).encode()
        self.assertIn("has no net-1.whl", self.run_it()[2])
        del self.served["/simple/net/"]
        self.assertIn("cannot read " + self.index, self.run_it()[2])
        self.index = "http://127.0.0.1:1/simple"
        self.assertIn("refused", self.run_it()[2])
        self.assertEqual(self.laid_out(), [])

    def test_another_machine_is_told_so(self):
        self.entry["machine"] = "pdp11"
        code, _, err = self.run_it()
        self.assertEqual((code, self.asked), (1, []))
        self.assertIn("it is for pdp11", err)

    def test_a_wrong_name_is_refused_with_the_nearest(self):
        code, _, err = self.run_it("findre")
        self.assertEqual(code, 2)
        self.assertIn("did you mean 'finder'?", err)

    def test_the_list_says_what_there_is_and_fetches_nothing(self):
        code, out, _ = self.run_it("--list")
        self.assertEqual((code, self.asked), (0, []))
        self.assertIn("finder: it finds\n  net 1, MIT", out)


class TheList(unittest.TestCase):
    def test_each_entry_has_its_package_its_sum_and_its_licences(self):
        models = json.loads((fetch.ROOT / "models.json").read_text(encoding="utf-8"))
        for name, entry in models.items():
            with self.subTest(name=name):
                self.assertRegex(entry["sha256"], r"\A[0-9a-f]{64}\Z")
                self.assertIn(entry["version"], entry["wheel"])
                for key in ("what", "package", "licence", "files", "licence_files"):
                    self.assertTrue(entry[key])


if __name__ == "__main__":
    unittest.main()
