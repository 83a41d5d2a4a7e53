# ep_library(base SOURCES a.cpp DEPENDS ... TESTS a_test.cpp): the static library ep_base of folder src/base and its
# test program ep_base_test. Test programs share one precompiled GoogleTest header (it dominates their compile time).
function(ep_library name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPENDS;TESTS;TEST_DEPENDS" ${ARGN})
  add_library(ep_${name} STATIC ${A_SOURCES})
  target_include_directories(ep_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(ep_${name} PUBLIC ep_flags ep_small ep_fmt ${A_DEPENDS})
  if(EP_TESTS AND A_TESTS)
    ep_test(ep_${name}_test SOURCES ${A_TESTS} DEPENDS ep_${name} ${A_TEST_DEPENDS})
  endif()
endfunction()

# ep_test(NAME SOURCES ... DEPENDS ...): a GoogleTest program, each case its own ctest entry.
function(ep_test name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPENDS" ${ARGN})
  include(GoogleTest)
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_DEPENDS} ep_flags GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE EP_SOURCE_DIR="${CMAKE_SOURCE_DIR}" EP_BINARY_DIR="${CMAKE_BINARY_DIR}")
  target_compile_options(${name} PRIVATE -O1 -Wno-shadow)
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h> <gmock/gmock.h> <string> <vector>)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 120)
endfunction()
