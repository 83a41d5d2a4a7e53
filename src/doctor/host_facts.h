// The typed facts of a host in the names that problems speak (data/VOCABULARY.md, "problem"). Pure.
#pragma once
#include "doctor/observed.h"
#include "facts/facts.h"
#include "facts/libraries.h"

namespace ep {

void observe_host(const Facts& facts, Observed& observed);
/// What a process would load, as the files say: nearer to the run than what packages claim.
void observe_libraries(const LibraryFacts& libraries, Observed& observed);

}  // namespace ep
