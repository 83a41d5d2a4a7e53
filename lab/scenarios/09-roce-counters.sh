#!/bin/bash
# Soft RoCE: real GID tables, roles, traffic on two rails that moves the counters, and a GID index that drifts.
fresh_vm

say "two cables: each rail and its far end are ports of this kernel, and rules make the traffic between them use the cable"
vm 'cat >/root/wire.sh' <<'GUEST'
set -e
for device in $(rdma link show | sed -n 's,^link \([^/]*\)/.*,\1,p'); do rdma link del "$device"; done
sysctl -qw net.ipv4.conf.all.accept_local=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2
for n in 0 1; do
  ip link add rail$n mtu 4200 type veth peer name peer$n mtu 4200
  for i in rail$n peer$n; do sysctl -qw net.ipv4.conf.$i.rp_filter=0 net.ipv4.conf.$i.accept_local=1; done
  ip addr add 198.18.1$n.1/24 dev rail$n
  ip addr add 198.18.1$n.2/24 dev peer$n
  ip link set rail$n up; ip link set peer$n up
  ip route add 198.18.1$n.2 dev rail$n table 1$n
  ip route add 198.18.1$n.1 dev peer$n table 2$n
  ip rule add pref 10 iif lo to 198.18.1$n.2 lookup 1$n
  ip rule add pref 10 iif lo to 198.18.1$n.1 lookup 2$n
  rdma link add rocep14$((5 + n))s0 type rxe netdev rail$n
  rdma link add rocep20$((5 + n))s0 type rxe netdev peer$n
done
ip rule add pref 100 lookup local
ip rule del pref 0
GUEST
vm 'cat >/usr/local/bin/rail-traffic' <<'GUEST'
#!/bin/sh
# rail-traffic RAIL...: 100 messages of 64 kB there and back on each rail, one after the other.
for n in "$@"; do
  ibv_rc_pingpong -d rocep20$((5 + n))s0 -g 1 -s 65536 -n 100 -m 4096 -p $((18515 + n)) &
  sleep 2
  ibv_rc_pingpong -d rocep14$((5 + n))s0 -g 1 -s 65536 -n 100 -m 4096 -p $((18515 + n)) 127.0.0.1 || exit 1
  wait
done
GUEST
vm 'chmod 755 /usr/local/bin/rail-traffic; bash /root/wire.sh; sleep 2'

say "facts: the kernel's GID tables, driver by the device's parent netdev"
expect 0 'epready facts --json >/root/facts.json; python3 -c "
import json
for d in json.load(open(\"/root/facts.json\"))[\"rdma\"]:
    print(d[\"id\"], d[\"driver\"][\"value\"], [(g[\"gid\"], g[\"type\"][\"value\"]) for g in d[\"ports\"][0][\"gids\"]])"'
says "rocep145s0 rdma_rxe"
says "('0000:0000:0000:0000:0000:ffff:c612:0a01', 'RoCE v2')"

say "topology: soft RoCE is not for IBGDA, its routed GID is index 1 and not 3"
expect 1 epready topology
says "soft-RoCE: no mlx5 direct verbs"
says "rail0 GID 1"

say "even traffic on both rails"
expect 0 'NO_COLOR=1 epready topology --watch --interval 1 --run "rail-traffic 0 1" 2>/root/watch.log'
cat "$WORK/out"
says "even over 4 NICs"
says "netdev: all its traffic, not only RDMA"
says "RDMA packets"
expect 0 'grep -c "GB/s" /root/watch.log'

say "the bytes are the netdev's own, and both ends agree with what the programs moved (100 x 64 kB there and back)"
expect 0 'epready topology --watch --json --run "rail-traffic 0 1" >/root/even.json 2>/dev/null; python3 -c "
import json
j = json.load(open(\"/root/even.json\"))
for n in j[\"nics\"]:
    sent = 100 * 65536
    assert n[\"source\"] == \"netdev\" and sent < n[\"tx_bytes\"] < 1.2 * sent, n
    assert n[\"tx_packets\"] > 100 * 16, n
print(\"bytes right\", [n[\"tx_bytes\"] for n in j[\"nics\"]], j[\"evenness\"][\"verdict\"])"'
says "bytes right"
cat "$WORK/out"

say "all on one rail: the idle ones are named"
expect 1 'NO_COLOR=1 epready topology --watch --run "rail-traffic 0" 2>/dev/null'
says "idle: rocep146s0, rocep206s0"

say "a command that fails is said; counters that nobody moved prove nothing"
expect 1 'NO_COLOR=1 epready topology --watch --run "exit 7"'
says "exit 7"
expect 3 'NO_COLOR=1 epready topology --watch --seconds 1 --interval 0.5 2>/dev/null'
says "no NIC carried more than 1 MB"

say "drift: the address of a rail moves while somebody watches, and between two snapshots"
vm 'epready snapshot -o /root/before.snap >/dev/null 2>&1'
expect 3 'NO_COLOR=1 epready topology --watch --interval 0.5 --run "sleep 1; ip addr add 198.18.20.1/24 dev rail0; ip addr del 198.18.10.1/24 dev rail0; sleep 2"'
says "gid_drift"
says "the right GID index moved from 1 to 2"
vm 'epready snapshot -o /root/after.snap >/dev/null 2>&1'
expect 1 epready topology --from /root/before.snap /root/after.snap
says "the right GID index moved from 1 to 2"
