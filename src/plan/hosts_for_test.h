// Hosts in code for the tests of planning: a fresh GCP A4, an H100 InfiniBand node and so on, a generator of
// odd ones, and `assume`, which changes facts so that a predicate holds (for the laws of a plan). Test code
// only.
#pragma once
#include <cstdint>

#include "facts/facts.h"
#include "plan/plan.h"

namespace ep::test {

Facts laptop();
Facts gcp_a4_fresh();
Facts h100_infiniband();
Facts a100_roce();
Facts aws_b200_efa();
Facts gke_pod();
/// Same seed, same host.
Facts random_host(uint64_t seed);

void add_gpus(Facts& facts, int count, const char* name, int compute_capability);
void add_nics(Facts& facts, int count, const char* name_prefix, const char* driver, const char* link_layer);
void add_package(Facts& facts, const char* name, const char* version = "1");
void add_driver(Facts& facts, const char* version, bool open, const char* registry_dwords);
void add_cuda(Facts& facts, const char* version);

void assume(Facts& facts, const Predicate& predicate);

}  // namespace ep::test
