// SPDX-License-Identifier: BSL-1.0
// The law of patterns over the operators of this folder.
#include "../laws/sparsity.cpp"
