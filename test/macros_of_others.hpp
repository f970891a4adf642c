// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Macros that headers of others define, for units that include varve behind them. The standard library and varve's
/// dependencies must be read before. Left out are macros with parameters that are named like functions of varve, as
/// `check` of Apple's AssertMacros.h, and `I` of complex.h, which libraries of C++ do not survive either.

// <windows.h>
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define near
#define far
#define small char
#define hyper long long
#define interface struct
#define pascal
#define cdecl
#define FAR
#define NEAR
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define VOID void
#define THIS this
#define STRICT 1
#define TRUE 1
#define FALSE 0
#define ERROR 0
#define NO_ERROR 0
#define DELETE 0x00010000
#define INFINITE 0xFFFFFFFF
#define ABSOLUTE 1
#define RELATIVE 2
#define TRANSPARENT 1
#define OPAQUE 2
#define DOMAIN 1
#define SING 2
#define OVERFLOW 3
#define UNDERFLOW 4
#define DIFFERENCE 11
#define CALLBACK
#define INPUT INPUT_OF_WINDOWS
#define Yield()
#define GetObject GetObjectA
#define GetMessage GetMessageA
#define SendMessage SendMessageA
#define CreateFile CreateFileA
#define DeleteFile DeleteFileA
#define LoadImage LoadImageA
#define DrawText DrawTextA

// Qt
#define signals public
#define slots
#define emit
#define foreach(variable, container) for (variable : container)
#define forever for (;;)

// X11
#define Bool int
#define Status int
#define True 1
#define False 0
#define None 0L
#define Always 2
#define Success 0
#define Above 0
#define Below 1
#define Complex 0
#define Convex 2
#define CurrentTime 0L
#define KeyPress 2

// glibc's <sys/sysmacros.h> and <sys/param.h>, BSD
#define major(device) ((device) >> 8)
#define minor(device) ((device) & 255)
#define makedev(a, b) ((a) << 8 | (b))
#define howmany(x, y) (((x) + (y) - 1) / (y))
#define roundup(x, y) ((((x) + (y) - 1) / (y)) * (y))
#define powerof2(x) ((((x) - 1) & (x)) == 0)
#define MIN(a, b) (((a) < (b)) ? (a) : (b))
#define MAX(a, b) (((a) > (b)) ? (a) : (b))

// Arduino, <ctype.h> of newlib, Objective-C
#define _U 01
#define _L 02
#define _N 04
#define _S 010
#define _P 020
#define _C 040
#define _X 0100
#define _B 0200
#define B0 0
#define B1 1
#define B1000 8
#define PI 3.1415926535897932384626433832795
#define DEC 10
#define HEX 16
#define HIGH 1
#define LOW 0
#define OUTPUT 1
#define constrain(x, low, high) ((x) < (low) ? (low) : ((x) > (high) ? (high) : (x)))
#define radians(x) ((x) * 0.017453292519943295)
#define sq(x) ((x) * (x))
#define lowByte(w) ((w) & 0xff)
#define nil nullptr
#define YES 1
#define NO 0

// glog and others
#define CHECK(x) (void)(x)
#define LOG(x) (void)(x)
#define ASSERT(x) (void)(x)
#define VERIFY(x) (void)(x)
