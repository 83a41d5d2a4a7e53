// The cases of epready-engine-gpu: one per process, each a row of the table in main.cpp.
#pragma once

#include "gate.h"
#include "options.h"

namespace ep::engine::gpu {

/// Each runs on every rank and returns the exit code of the rank. Rank 0 prints.
int case_gate(Group& group, const Options& options);
int case_check(Group& group, const Options& options);
int case_stress(Group& group, const Options& options);
int case_fault(Group& group, const Options& options);
int case_ceiling(Group& group, const Options& options);
int case_bench(Group& group, const Options& options);
int case_tune(Group& group, const Options& options);
int case_versus(Group& group, const Options& options);

/// A rank set up for the largest of `shapes`.
RankSetup setup_of(const Options& options, const std::vector<Shape>& shapes);
/// The shape of the options with `tokens` as the largest number and the pattern's counts.
Shape shape_of(const Options& options, int tokens);
/// Collective: reads the gate on rank 0 and gives everybody its verdict. Throws Failure(3) when it says stop.
GateResult pass_gate(Group& group, const Options& options);
/// Collective: the first text that is not empty, over all ranks.
std::string first_text(Group& group, const std::string& mine);

}  // namespace ep::engine::gpu
