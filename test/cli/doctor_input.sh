#!/bin/sh
# What people and machines feed the doctor: UTF-16, endless lines, noise, nothing at all; and that the forms for CI,
# code hosts and monitoring stay well-formed and never take silence for health.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
python3 - <<'PY'
import random
line = "WARN: device rocep145s0 is not enumerated as an mlx5 device. Skipping..."
write = lambda name, data: open(name, "wb").write(data)
write("le.log", ("\ufeffhello\r\n" + line + "\r\n").encode("utf-16-le"))
write("be.log", ("plain text of a log without any mark\n" * 9 + line + "\n").encode("utf-16-be"))
write("long.log", b"x" * 7_000_000 + (" " + line + " ").encode() + b"y" * 3_000_000)
write("noise.log", random.Random(1).randbytes(2_000_000) + b"\n" + line.encode() + b"\n" + random.Random(2).randbytes(500_000))
write("end.log", line.encode())
write("empty.log", b"")
write("odd name.log", b"\x01\x02\xff\xfe\x80 " + line.encode() + b" \x1b[0m\x08 \xc3( ]]> & <x>\n")
PY
for log in le be long noise end; do
  run 1 doctor "$log.log"; out_has driver.hca-name
done
run 1 doctor le.log; out_has UTF-16
run 1 doctor noise.log; out_has "binary bytes"
run 1 doctor long.log; out_has "64 KiB"
# Bounded memory: a line of 10 MB within 300 MB of address space (which AddressSanitizer's own shadow exceeds).
if grep -q __asan_init "$EPREADY"; then
  echo "left out: the memory limit, under AddressSanitizer"
else
  code=0; prlimit --as=300000000 "$EPREADY" doctor long.log >small.out 2>&1 || code=$?
  [ $code = 1 ] || die "a long line in little memory: exit code $code"
  grep -q driver.hca-name small.out || die "a long line in little memory: $(head -c 300 small.out)"
fi

# Well-formed whatever the line holds.
run 1 doctor --json "odd name.log"; json 'd["findings"][0]["kind"] == "driver.hca-name"'
run 1 doctor --format sarif "odd name.log"
# shellcheck disable=SC2016 # a JSON key, no variable
json 'd["version"] == "2.1.0" and d["$schema"].startswith("https://")'
json 'all(r["ruleId"] in [x["id"] for x in d["runs"][0]["tool"]["driver"]["rules"]] for r in d["runs"][0]["results"])'
json 'all(r["level"] in ("error","warning","note") and r["message"]["text"] for r in d["runs"][0]["results"])'
json 'd["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "odd%20name.log"'
json 'd["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 1'
run 1 doctor --format ctrf "odd name.log"
json 'd["reportFormat"] == "CTRF" and d["results"]["summary"]["tests"] == len(d["results"]["tests"])'
json 'd["results"]["summary"]["failed"] == sum(t["status"] == "failed" for t in d["results"]["tests"]) > 0'
junit() { # failures, errors
  python3 - "$scratch/out" "$1" "$2" <<'PY' || die "JUnit"
import sys, xml.etree.ElementTree as e
s = e.parse(sys.argv[1]).getroot()
cases = s.findall("testcase")
assert s.tag == "testsuite" and int(s.get("tests")) == len(cases) > 0
assert int(s.get("failures")) == len(s.findall("testcase/failure")) == int(sys.argv[2])
assert int(s.get("errors")) == len(s.findall("testcase/error")) == int(sys.argv[3])
PY
}
run 1 doctor --format junit "odd name.log"; junit 1 0
run 2 doctor --format nagios "odd name.log"; [ "$(wc -l <out)" = 1 ] || die "nagios: more than one line"
run 1 doctor --format markdown "odd name.log"
# shellcheck disable=SC2016 # Markdown, no command
out_has '### fail `driver.hca-name`'

# No answer is no health: an empty log, one that cannot be read, an error that nobody knows.
run 3 doctor empty.log; out_has "Not judged"
run 3 doctor --format junit empty.log; junit 0 1
run 3 doctor --format ctrf empty.log; json 'd["results"]["summary"]["other"] == 1 and d["results"]["summary"]["passed"] == 0'
run 3 doctor --format sarif empty.log; json 'd["runs"][0]["invocations"][0]["executionSuccessful"] is False'
run 3 doctor --format nagios empty.log; out_has UNKNOWN
run 3 doctor /proc/self/mem; err_has "/proc/self/mem"; out_has "Not judged"
printf 'RuntimeError: nobody has met this | or that\n' >unknown.log
run 3 doctor --format junit unknown.log; junit 0 1
run 3 doctor --format nagios unknown.log; out_has "EPREADY UNKNOWN"; [ "$(tr -cd '|' <out | wc -c)" = 1 ] || die "nagios: a bar in the text"
echo "odd input is answered or said to be unread"
