/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once
#define BPF_CORE_READ_BITFIELD(from, field) ((from)->field)
