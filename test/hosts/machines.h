// The invented machines: what data/samples/ holds, and fixtures for tests.
#pragma once
#include <string>
#include <vector>

#include "host/snapshot.h"

namespace ep::test {

SnapshotData gcp_a4_fresh();  ///< Ubuntu 24.04, 8 B200, 8 rocep* NICs, driver only
SnapshotData gcp_a4_done();   ///< the same after a finished plan of stack v1-gcp-b200
SnapshotData gke_a4_pod();    ///< privileged pod on a COS node, NVIDIA's PyTorch image
SnapshotData h100_ib();       ///< 8 H100, 8 NDR HCAs, a storage HCA, a management NIC
SnapshotData laptop();        ///< no GPU

struct NamedMachine {
  const char* name;
  SnapshotData (*make)();
};
const std::vector<NamedMachine>& machines();

}  // namespace ep::test
