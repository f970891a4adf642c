// SPDX-License-Identifier: BSL-1.0
// The laws of derivatives over the operators of this folder.
#include "../laws/derivative.cpp"
