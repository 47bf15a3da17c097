/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once
#define BPF_PROG(name, ...) name(__VA_ARGS__)
