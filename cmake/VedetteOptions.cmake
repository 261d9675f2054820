# Compiler settings shared by every target.
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

option(VEDETTE_SANITIZE "Address and undefined-behaviour sanitizers" OFF)
option(VEDETTE_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(VEDETTE_KERNELS_ONLY "Build base and ops with their tests alone, as for an emulated processor" OFF)
# Test of a test: wide steps reduce in another order, so the row-invariance tests must fail.
option(VEDETTE_BREAK_ROW_INVARIANCE "Deliberately break row invariance" OFF)

# The numerical contract (docs/architecture.md): products and sums are fused only where std::fma or
# an intrinsic says so, and nothing is reassociated.
add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers -ffp-contract=off -fno-fast-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports false positives of these inside its own headers and intrinsics at -O3.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized> $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>
                      $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Vectors of the portable kernels never cross a library border; GCC's own std::stable_sort uses what it deprecates.
  add_compile_options(-Wno-psabi -Wno-deprecated-declarations)
endif()
if(VEDETTE_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
endif()
if(VEDETTE_BREAK_ROW_INVARIANCE)
  add_compile_definitions(VEDETTE_BREAK_ROW_INVARIANCE)
endif()

find_program(VEDETTE_CCACHE ccache)
if(VEDETTE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${VEDETTE_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${VEDETTE_CCACHE})
endif()
find_program(VEDETTE_MOLD mold)
if(VEDETTE_MOLD AND NOT CMAKE_CROSSCOMPILING)  # a cross compiler looks for linkers of its own name alone
  add_link_options(-fuse-ld=mold)
endif()

# vedette_layer(NAME SOURCES... DEPENDS...): one static library per layer, and its unit tests.
function(vedette_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPENDS" ${ARGN})
  add_library(vedette_${name} STATIC ${ARG_SOURCES})
  target_include_directories(vedette_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(vedette_${name} PUBLIC ${ARG_DEPENDS})
  if(ARG_TESTS)
    add_executable(${name}_test ${ARG_TESTS})
    target_link_libraries(${name}_test PRIVATE vedette_${name} GTest::gtest GTest::gtest_main rapidcheck)
    target_compile_definitions(${name}_test PRIVATE VEDETTE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    add_test(NAME ${name} COMMAND ${name}_test)
  endif()
endfunction()
