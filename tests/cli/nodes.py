#!/usr/bin/env python3
"""The commands about nodes: the id of a machine, and the list of those that it trusts.

usage: nodes.py MILLRACE [unittest arguments]
"""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

MILLRACE = ""
SECONDS_MAX = 60


class Nodes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_on(self, machine, *arguments, code=0):
        """Runs a command as on a machine of that name, which is a folder of settings."""
        environment = {**os.environ, "XDG_CONFIG_HOME": str(self.folder / machine)}
        result = subprocess.run([MILLRACE, *arguments], capture_output=True, text=True, timeout=SECONDS_MAX,
                                stdin=subprocess.DEVNULL, env=environment)
        self.assertEqual(result.returncode, code, f"{arguments}\n{result.stdout}{result.stderr}")
        return result

    def refused(self, machine, *arguments, error="MR0105", code=2):
        result = self.run_on(machine, *arguments, code=code)
        self.assertTrue(result.stderr.startswith(f"error {error}: "), result.stderr)
        self.assertEqual(result.stdout, "")
        return result.stderr

    def id_of(self, machine):
        return json.loads(self.run_on(machine, "identity", "--json").stdout)["id"]

    def known(self, machine):
        return json.loads(self.run_on(machine, "nodes", "--json").stdout)["nodes"]

    def test_a_machine_has_one_id_which_a_key_of_its_own_proves(self):
        said = self.run_on("desk", "identity").stdout.splitlines()
        key = self.folder / "desk" / "millrace" / "key.pem"
        self.assertEqual(said, [self.id_of("desk"), f"kept in {key}"])
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
        self.assertRegex(said[0], r"^mr:[A-Z2-7]{54}$")
        self.assertNotEqual(said[0], self.id_of("shelf"))

    def test_a_node_is_added_listed_changed_and_forgotten(self):
        shelf = self.id_of("shelf")
        self.assertEqual(self.known("desk"), [])
        self.assertIn("millrace nodes add NAME ID ADDRESS", self.run_on("desk", "nodes").stdout)
        short = json.loads(self.run_on("shelf", "identity", "--json").stdout)["short"]
        self.assertEqual(self.run_on("desk", "nodes", "add", "shelf", shelf, "10.0.0.2", "[::1]:7000").stdout,
                         f"added shelf ({short})\n")
        self.assertEqual(self.known("desk"),
                         [{"name": "shelf", "id": shelf, "addresses": ["10.0.0.2:7433", "[::1]:7000"]}])
        self.assertEqual(self.run_on("desk", "nodes").stdout, f"shelf  {short}  10.0.0.2:7433 [::1]:7000\n")
        self.assertEqual(self.run_on("desk", "nodes", "add", "rack", shelf).stdout, f"changed rack ({short})\n")
        self.assertEqual(self.run_on("desk", "nodes").stdout, f"rack  {short}  no address\n")
        self.assertEqual(self.run_on("desk", "nodes", "forget", "rack").stdout, "forgot rack\n")
        self.run_on("desk", "nodes", "add", "shelf", shelf)
        self.assertEqual(self.run_on("desk", "nodes", "forget", shelf).stdout, "forgot shelf\n")
        self.assertEqual(self.known("desk"), [])

    def test_an_id_is_taken_as_people_copy_it(self):
        shelf = self.id_of("shelf")
        spelled = "mr:" + "-".join(shelf[3:].lower()[at:at + 4] for at in range(0, 54, 4))
        self.run_on("desk", "nodes", "add", "shelf", spelled)
        self.assertEqual(self.known("desk")[0]["id"], shelf)

    def test_mistakes_say_what_was_expected(self):
        shelf = self.id_of("shelf")
        damaged = shelf[:20] + ("A" if shelf[20] != "A" else "B") + shelf[21:]
        self.assertIn(f'error MR0105: the id "{damaged}" ', self.refused("desk", "nodes", "add", "shelf", damaged))
        self.assertIn("as `millrace identity` says it", self.refused("desk", "nodes", "add", "shelf", shelf[3:]))
        self.assertIn("this machine itself", self.refused("desk", "nodes", "add", "me", self.id_of("desk")))
        self.assertIn("needs a name and an id", self.refused("desk", "nodes", "add", "shelf"))
        self.assertIn("did you mean 'forget'?", self.refused("desk", "nodes", "forgte", "shelf"))
        self.refused("desk", "nodes", "add", "shelf", shelf, "10.0.0.2:port", error="MR0816", code=2)
        self.refused("desk", "nodes", "add", "a name", shelf, error="MR0815", code=1)
        self.run_on("desk", "nodes", "add", "shelf", shelf)
        said = self.refused("desk", "nodes", "forget", "shell")
        self.assertIn("known: shelf", said)
        self.assertIn("did you mean 'shelf'?", said)
        self.refused("desk", "nodes", "add", "shelf", self.id_of("rack"), error="MR0815", code=1)

    def test_a_damaged_line_of_the_list_is_told_and_kept(self):
        self.run_on("desk", "nodes", "add", "shelf", self.id_of("shelf"))
        peers = self.folder / "desk" / "millrace" / "peers.txt"
        peers.write_text("mr:DAMAGED rack\n" + peers.read_text())
        listed = self.run_on("desk", "nodes")
        self.assertIn("peers.txt", listed.stderr)
        self.assertTrue(listed.stdout.startswith("shelf  "), listed.stdout)
        self.run_on("desk", "nodes", "forget", "shelf")
        self.assertEqual(peers.read_text(), "mr:DAMAGED rack\n")

    def test_without_a_place_for_settings_there_is_no_key(self):
        environment = {key: value for key, value in os.environ.items() if key not in ("XDG_CONFIG_HOME", "HOME")}
        result = subprocess.run([MILLRACE, "identity"], capture_output=True, text=True, timeout=SECONDS_MAX, env=environment)
        self.assertTrue(result.stderr.startswith("error MR0815: "), result.stderr)


if __name__ == "__main__":
    MILLRACE = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
