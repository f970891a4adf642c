// SPDX-License-Identifier: BSL-1.0
// varve in one file. Written by single_include/amalgamate.cmake from include/varve: do not edit.
#pragma once
