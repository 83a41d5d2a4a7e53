# One interface target that every library of ours links: language level, warnings, sanitizers, section garbage collection.
add_library(ep_flags INTERFACE)
# -Wno-restrict: g++ 12 warns falsely on string concatenation (GCC bug 105651).
target_compile_features(ep_flags INTERFACE cxx_std_20)
target_compile_options(ep_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
  -Werror=return-type -Wno-restrict -ffunction-sections -fdata-sections>)
# g++ 12 also warns falsely that a std::optional taken from a conditional may be unset (GCC bug 80635); 13 does not.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(ep_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
endif()
if(EP_WERROR)
  target_compile_options(ep_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(EP_SANITIZE)
  string(REPLACE ";" "," _ep_san "${EP_SANITIZE}")
  target_compile_options(ep_flags INTERFACE -fsanitize=${_ep_san} -fno-omit-frame-pointer -g1)
  target_link_options(ep_flags INTERFACE -fsanitize=${_ep_san})
else()
  # Sanitizer run-times want the shared C++ library; everything else carries its own.
  target_link_options(ep_flags INTERFACE -static-libstdc++ -static-libgcc)
endif()
target_link_options(ep_flags INTERFACE -Wl,--gc-sections)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")  # for sanitizers: lines in reports, asserts on, half of the time of -O2 -g
# The program is small by design (it travels to GPU hosts): ep_library links this. The log scan, which must be fast, asks
# for -O3 itself; the engine does not link it.
add_library(ep_small INTERFACE)
target_compile_options(ep_small INTERFACE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Os>)
