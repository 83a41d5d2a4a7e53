// Laws of the topology's verdict on texts of which something is missing. Machines of several kinds are
// written as the tools print them, one section a tool, and asked with every subset of their sections: unknown
// is never pass, a healthy machine never fails, and what fails as a whole never passes in part.
#include "facts/topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "facts/text_facts.h"

namespace ep {
namespace {

enum class Fault { none, port_down, no_nic_for_one, no_nvlink, old_gpu };

struct Machine {
  int gpus = 8;
  bool roce = false;
  const char* ports = "ibstat";  // the tool that shows port states
  int turn = 0;                  // GPU g sits beside NIC (g + turn) % gpus
  Fault fault = Fault::none;
};

struct Section {
  const char* kind;
  std::string text;
};

int nics_of(const Machine& m) {
  return m.gpus + 1;  // one more for the host's network
}
int nic_of(const Machine& m, int gpu) {
  return (gpu + m.turn) % m.gpus;
}
bool rail(const Machine& m, int nic) {
  return nic < m.gpus;
}
bool up(const Machine& m, int nic) {
  return m.fault != Fault::port_down || nic != 1;
}
bool ethernet(const Machine& m, int nic) {
  return m.roce || !rail(m, nic);
}

std::string matrix(const Machine& m) {
  const std::string link = m.fault == Fault::no_nvlink ? "SYS" : m.fault == Fault::old_gpu ? "NV12" : "NV18";
  std::string t = "\t";
  for (int g = 0; g < m.gpus; ++g) t += fmt::format("GPU{}\t", g);
  for (int n = 0; n < nics_of(m); ++n) t += fmt::format("NIC{}\t", n);
  t += "CPU Affinity\tNUMA Affinity\n";
  auto near = [&](int g, int n) {
    const bool lost = m.fault == Fault::no_nic_for_one && g == 0;
    return rail(m, n) && nic_of(m, g) == n        ? (lost ? "SYS" : "PIX")
           : (g < m.gpus / 2) == (n < m.gpus / 2) ? "NODE"
                                                  : "SYS";
  };
  for (int g = 0; g < m.gpus; ++g) {
    t += fmt::format("GPU{}\t", g);
    for (int h = 0; h < m.gpus; ++h) t += (g == h ? " X " : link) + "\t";
    for (int n = 0; n < nics_of(m); ++n) t += std::string(near(g, n)) + "\t";
    t += g < m.gpus / 2 ? "0-55\t0\n" : "56-111\t1\n";
  }
  for (int n = 0; n < nics_of(m); ++n) {
    t += fmt::format("NIC{}\t", n);
    for (int g = 0; g < m.gpus; ++g) t += std::string(near(g, n)) + "\t";
    for (int k = 0; k < nics_of(m); ++k) t += n == k ? " X \t" : "SYS\t";
    t += "\n";
  }
  t += "\nLegend:\n\n  X    = Self\n  SYS  = crosses sockets\n  NODE = inside a socket\n  PIX  = one "
       "switch\n  NV#  = links\n";
  t += "\nNIC Legend:\n\n";
  for (int n = 0; n < nics_of(m); ++n) t += fmt::format("  NIC{}: mlx5_{}\n", n, n);
  return t;
}

std::string ports(const Machine& m) {
  std::string t;
  const std::string_view tool = m.ports;
  for (int n = 0; n < nics_of(m); ++n) {
    const char* layer = ethernet(m, n) ? "Ethernet" : "InfiniBand";
    const int rate = rail(m, n) ? 400 : 100;
    if (tool == "ibstat")
      t += fmt::format(
          "CA 'mlx5_{}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: {}\n\t\tPhysical "
          "state: "
          "{}\n\t\tRate: {}\n\t\tLink layer: {}\n",
          n, up(m, n) ? "Active" : "Down", up(m, n) ? "LinkUp" : "Disabled", rate, layer);
    else if (tool == "ibstat | grep")
      t += fmt::format("CA 'mlx5_{}'\n\t\tState: {}\n\t\tRate: {}\n\t\tLink layer: {}\n", n,
                       up(m, n) ? "Active" : "Down", rate, layer);
    else if (tool == "ibstatus")
      t += fmt::format(
          "Infiniband device 'mlx5_{}' port 1 status:\n\tdefault gid:\t fe80::1\n\tbase lid:\t "
          "0x1\n\tstate:\t\t "
          "{}\n\tphys state:\t {}\n\trate:\t\t {} Gb/sec (4X NDR)\n\tlink_layer:\t {}\n\n",
          n, up(m, n) ? "4: ACTIVE" : "1: DOWN", up(m, n) ? "5: LinkUp" : "3: Disabled", rate, layer);
    else
      t += fmt::format(
          "hca_id:\tmlx5_{}\n\ttransport:\t\tInfiniBand "
          "(0)\n\tfw_ver:\t\t28.43.1014\n\tphys_port_cnt:\t1\n\t\tport:\t1\n"
          "\t\t\tstate:\t\t{}\n\t\t\tmax_mtu:\t4096 (5)\n\t\t\tlink_layer:\t{}\n\n",
          n, up(m, n) ? "PORT_ACTIVE (4)" : "PORT_DOWN (1)", layer);
  }
  return t;
}

std::vector<Section> sections(const Machine& m) {
  std::vector<Section> s;
  std::string list, netdevs, gids, nodes = "rdma_cm";
  for (int g = 0; g < m.gpus; ++g)
    list += fmt::format("GPU {}: NVIDIA {} (UUID: GPU-5eed{:04d})\n", g,
                        m.fault == Fault::old_gpu ? "A100-SXM4-80GB" : "H100 80GB HBM3", g);
  for (int n = 0; n < nics_of(m); ++n) {
    // The netdev of an InfiniBand port is IPoIB and mostly down.
    netdevs += fmt::format("mlx5_{} port 1 ==> {}{} ({})\n", n, ethernet(m, n) ? "eth" : "ib", n,
                           ethernet(m, n) && up(m, n) ? "Up" : "Down");
    if (m.roce && up(m, n))
      gids += fmt::format(
          "mlx5_{0}\t1\t3\t0000:0000:0000:0000:0000:ffff:c612:{0:02x}05\t198.18.{0}.5\tv2\teth{0}\n", n);
    nodes += fmt::format("  uverbs{}", n);
  }
  s.push_back({"list", "$ nvidia-smi -L\n" + list});
  s.push_back({"matrix", "$ nvidia-smi topo -m\n" + matrix(m)});
  s.push_back({"ports", fmt::format("$ {}\n", m.ports) + ports(m)});
  s.push_back({"netdevs", "$ ibdev2netdev\n" + netdevs});
  if (m.roce)
    s.push_back({"gids", "$ show_gids\n" + gids +
                             fmt::format("n_gids_found={}\n", std::count(gids.begin(), gids.end(), '\n'))});
  s.push_back({"nodes", "$ ls /dev/infiniband\n" + nodes + "\n"});
  s.push_back({"params",
               "$ cat /proc/driver/nvidia/params\nEnableStreamMemOPs: 1\nRegistryDwords: "
               "\"PeerMappingOverride=1;\"\n"});
  return s;
}

Topology of_text(const std::string& text) {
  return read_topology(facts_of_paste(take_apart({{"paste", text}})[0], "paste"));
}

std::string joined(const std::vector<Section>& all, unsigned subset) {
  std::string text;
  for (size_t i = 0; i < all.size(); ++i)
    if (subset >> i & 1) text += all[i].text + "\n";
  return text;
}
bool has(const std::vector<Section>& all, unsigned subset, std::string_view kind) {
  for (size_t i = 0; i < all.size(); ++i)
    if ((subset >> i & 1) && all[i].kind == kind) return true;
  return false;
}

std::string codes(const Topology& t) {
  std::string s = fmt::format("{}:", to_string(t.verdict));
  for (const auto& f : t.findings) s += fmt::format(" {}/{}", f.code, to_string(f.severity));
  for (const auto& m : t.missing) s += " -" + m.code;
  return s;
}

template <class Body>
void for_all_machines(std::initializer_list<Fault> faults, const Body& body) {
  for (bool roce : {false, true})
    for (const char* tool : {"ibstat", "ibstat | grep", "ibstatus", "ibv_devinfo"})
      for (int turn : {0, 3})
        for (Fault fault : faults) {
          const int gpus = turn == 0 ? 4 : std::string_view(tool) == "ibstat" ? 8 : 4;
          SCOPED_TRACE(fmt::format("{} GPUs, {}, {}, turned by {}, fault {}", gpus,
                                   roce ? "RoCE" : "InfiniBand", tool, turn, int(fault)));
          body(Machine{gpus, roce, tool, turn, fault});
        }
}

TEST(TopologyLaw, AHealthyMachineInPartsIsPassOrUnknown) {
  for_all_machines({Fault::none}, [](const Machine& m) {
    const auto all = sections(m);
    const unsigned whole = (1u << all.size()) - 1;
    const auto full = of_text(joined(all, whole));
    ASSERT_EQ(full.verdict, Verdict::pass) << codes(full);
    ASSERT_EQ(full.mapping.confidence, Confidence::derived);
    for (unsigned subset = 0; subset < whole; ++subset) {
      const auto t = of_text(joined(all, subset));
      EXPECT_TRUE(t.verdict == Verdict::pass || t.verdict == Verdict::unknown) << subset << " " << codes(t);
      if (t.verdict == Verdict::unknown) EXPECT_FALSE(t.missing.empty()) << subset;
      // What a PASS rests on: the matrix, and a tool that shows states (of RoCE netdevs: ibdev2netdev).
      if (t.verdict == Verdict::pass) {
        EXPECT_TRUE(has(all, subset, "matrix")) << subset;
        EXPECT_TRUE(has(all, subset, "ports") || (m.roce && has(all, subset, "netdevs"))) << subset;
      }
    }
  });
}

TEST(TopologyLaw, WhatFailsAsAWholeNeverPassesInPart) {
  for_all_machines({Fault::port_down, Fault::no_nic_for_one, Fault::no_nvlink, Fault::old_gpu},
                   [](const Machine& m) {
                     const auto all = sections(m);
                     const unsigned whole = (1u << all.size()) - 1;
                     const auto full = of_text(joined(all, whole));
                     if (m.fault == Fault::no_nic_for_one)
                       ASSERT_NE(full.verdict, Verdict::pass) << codes(full);
                     else
                       ASSERT_EQ(full.verdict, Verdict::fail) << codes(full);
                     for (unsigned subset = 0; subset < whole; ++subset) {
                       const auto t = of_text(joined(all, subset));
                       EXPECT_NE(t.verdict, Verdict::pass) << subset << " " << codes(t);
                     }
                   });
}

// Any one line lost: a broken machine does not pass. A healthy one does not fail, but for the line that names
// a device in a listing of all devices: those that stand in it no more are taken for hidden.
TEST(TopologyLaw, ALostLineNeitherBreaksNorHeals) {
  for (bool roce : {false, true})
    for (Fault fault : {Fault::none, Fault::port_down}) {
      const Machine m{4, roce, "ibstat", 1, fault};
      const auto all = sections(m);
      const std::string text = joined(all, (1u << all.size()) - 1);
      const auto rows = lines(text);
      for (size_t skip = 0; skip < rows.size(); ++skip) {
        if (fault == Fault::none && starts_with(rows[skip], "CA '")) continue;
        std::string cut;
        for (size_t i = 0; i < rows.size(); ++i)
          if (i != skip) cut += std::string(rows[i]) + "\n";
        const auto t = of_text(cut);
        EXPECT_NE(t.verdict, fault == Fault::none ? Verdict::fail : Verdict::pass)
            << "without \"" << rows[skip] << "\": " << codes(t);
      }
    }
}

// Sections in any order, the text cut at any place: what failed does not pass, what passed still has its
// matrix and port states.
TEST(TopologyLaw, ATextCutAnywhereIsNoBetterThanItsWhole) {
  std::mt19937 random(7);
  int passes = 0, others = 0;
  for (int round = 0; round < 60; ++round) {
    const Machine m{round % 2 ? 4 : 8, round % 3 == 0, round % 5 ? "ibstat" : "ibv_devinfo", round % 4,
                    round % 4 == 3 ? Fault::port_down : Fault::none};
    auto all = sections(m);
    std::shuffle(all.begin(), all.end(), random);
    const std::string text = joined(all, (1u << all.size()) - 1);
    const auto full = of_text(text);
    ASSERT_EQ(full.verdict, m.fault == Fault::none ? Verdict::pass : Verdict::fail) << codes(full);
    for (int k = 0; k < 8; ++k) {
      const auto t = of_text(text.substr(0, random() % text.size()));
      ++(t.verdict == Verdict::pass ? passes : others);
      if (t.verdict != Verdict::pass) continue;
      EXPECT_NE(full.verdict, Verdict::fail) << codes(t);
      EXPECT_EQ(t.mapping.pairs, full.mapping.pairs);
    }
  }
  EXPECT_GT(passes, 10);
  EXPECT_GT(others, 100);
}

}  // namespace
}  // namespace ep
