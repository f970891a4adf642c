// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The halves of the table, compiled apart.
#include "../sample/op.hpp"

namespace sample {
void add_pointwise(std::vector<row>& to);
void add_others(std::vector<row>& to);
} // namespace sample
