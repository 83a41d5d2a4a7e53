#!/bin/sh
# The doctor from the outside: a log, a pipe, a growing log, the formats, a catalogue of one's own, exit codes.
. "$EP_SOURCE_DIR/test/cli/lib.sh"
problems=$EP_SOURCE_DIR/test/problems

run 1 doctor "$problems/nvshmem.qp-layout/hit1.log"; out_has nvshmem.qp-layout; out_has 3.4.5; out_has "next: epready explain"
run 1 doctor --json "$problems/nvshmem.qp-layout/hit1.log"
json 'd["schema"] == "epready-doctor-1" and d["findings"][0]["kind"] == "nvshmem.qp-layout" and d["findings"][0]["severity"] == "fail"'
json 'set(d["findings"][0]) >= {"kind","severity","confidence","title","cause","fix","evidence","ruled_out"}'
json 'd["findings"][0]["evidence"][0]["line"] == 10'
run 1 doctor --lang zh "$problems/driver.hca-name/hit1.log"; grep -q '[^ -~]' out || die "no Chinese text"
run 0 doctor "$problems/healthy/build.log"; out_has "No known problem found"
printf 'RuntimeError: nobody has met this\n' >new.log
run 3 doctor new.log; out_has "new.log:1"; out_has "No known problem matches"
run 3 doctor nowhere.log; err_has nowhere.log
head -c 4096 /dev/urandom >noise.log
run 3 doctor noise.log; out_has "Not judged"; out_has "is no text"
: >empty.log
run 3 doctor empty.log; out_has "nothing to read"
printf 'Traceback\n' | gzip >short.log.gz
run 3 doctor short.log.gz; out_has "zcat short.log.gz"
run 0 doctor "$problems/healthy/whole_buying_question.log"; out_has "container.ibverbs-provider"; out_has "No known problem found"
run 2 doctor "$problems"; err_has "folder"

code=0; "$EPREADY" doctor - <"$problems/driver.hca-name/hit1.log" >out 2>err || code=$?
[ $code = 1 ] || die "from a pipe: exit code $code"
out_has "stdin:2"

run 1 doctor --format sarif "$problems/driver.hca-name/hit1.log"; json 'd["version"] == "2.1.0" and d["runs"][0]["results"][0]["level"] == "error"'
run 1 doctor --format ctrf "$problems/driver.hca-name/hit1.log"; json 'd["results"]["summary"]["failed"] >= 1'
run 1 doctor --format junit "$problems/driver.hca-name/hit1.log"; python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' out || die "not XML"
run 1 doctor --format markdown "$problems/driver.hca-name/hit1.log"; out_has "### fail"
run 2 doctor --format nagios "$problems/driver.hca-name/hit1.log"; out_has "EPREADY CRITICAL - driver.hca-name"
run 0 doctor --format nagios "$problems/healthy/build.log"; out_has "EPREADY OK"
run 1 doctor --fix "$problems/driver.hca-name/hit1.log"; out_has "export NVSHMEM_HCA_PREFIX"

mkdir own
sed 's/driver.hca-name/site.own/; s/is not enumerated as an mlx5 device/our own words here/' \
  "$EP_SOURCE_DIR/data/problems/driver.hca-name.toml" | sed '/^\[\[not\]\]/,/^$/d; s/^regex = .*//' >own/site.own.toml
echo "RuntimeError: our own words here" >own.log
run 1 doctor --problems-dir own own.log; out_has site.own
echo 'kind = "site.bad"' >own/site.bad.toml
run 1 doctor --problems-dir own own.log; err_has "site.bad.toml"
run 0 explain site.own --problems-dir own
run 2 explain nvshmem.qp-layuot; err_has "nvshmem.qp-layout"
run 0 explain nvshmem.qp-layout --lang zh
run 0 explain lim.memlock; out_has "verify -r 1"
run 0 explain ptxas-blackwell --json; json "d['code'] == 'ptxas-blackwell' and d['rule'] and d['source']"
run 2 problems nosuch; err_has nosuch
run 0 problems gid; out_has init.roce-gid

# A growing log: speaks when the line comes, ends on SIGINT with what it found.
: >grow.log
"$EPREADY" doctor --follow grow.log >follow.out 2>follow.err &
pid=$!
cat "$problems/driver.hca-name/hit1.log" >>grow.log
n=0
until grep -q driver.hca-name follow.out; do
  n=$((n + 1)); [ $n -lt 600 ] || { kill $pid; die "--follow said nothing"; }
  python3 -c 'import select; select.select([], [], [], 0.05)'
done
kill -INT $pid; code=0; wait $pid || code=$?
[ $code = 5 ] || die "--follow: exit code $code"
echo "doctor answers"
