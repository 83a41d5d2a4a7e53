// What a run writes as JSON when it ends early, and who was the first to fail. Kept in memory that ranks
// share even when they are processes: a rank that is stopped by another's failure must not hide the cause.
#pragma once

#include <string>

#include "bench_report.h"
#include "failure.h"
#include "options.h"

namespace ep::engine::gpu {

struct Outcome {
  int exit_code = 0;
  int rank = -1;      // who failed first
  int to_blame = -1;  // the rank that the failure names, if any
  std::string phase, text;
};

/// Before ranks start. Failures noted later are seen by all of them.
void open_outcome();
/// The first call wins.
void note_failure(int rank, const Failure& failure);
/// Empty text: nobody has failed so far.
Outcome first_failure();
/// A JSON document is out; a failure after that adds none.
void note_written();
bool written();

/// It says nothing about the host: a wrong command line, or what cannot be done here.
bool says_nothing(const Outcome& outcome);
/// The record of a run that did not finish: `epready.engine.bench/1` with its `failure` for the bench, else
/// `epready.engine.failure/1`. That also for a bench that says nothing about the host: it is UNKNOWN, not
/// FAIL.
std::string failure_json(const Options& options, const Outcome& outcome);
/// The bench's record for one shape.
BenchReport failed_report(const Options& options, const Shape& shape, const Outcome& outcome);

}  // namespace ep::engine::gpu
