// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Catch2, version 2 or 3, under one name: TEST_CASE, SECTION, GENERATE, CHECK, REQUIRE, STATIC_REQUIRE, Approx, and
/// ContainsText for messages: `CHECK_THROWS_WITH(f(), ContainsText("sin"))`.

#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>
using Catch::Approx;
inline auto ContainsText(std::string const& text) { return Catch::Matchers::ContainsSubstring(text); }
#else
#include <catch2/catch.hpp> // brings Approx into the global namespace itself
inline auto ContainsText(std::string const& text) { return Catch::Matchers::Contains(text); }
#endif
