// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// The recorded operators as calls on tensors and attributes.
#include "reader.hpp"

namespace opinfo {
using call = tensor (*)(values const& x, std::vector<dims> const& at);
std::map<std::string, call> const& calls();
} // namespace opinfo
