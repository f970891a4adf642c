// SPDX-License-Identifier: BSL-1.0
// The law of lanes over the operators of this folder.
#include "../laws/batch.cpp"
