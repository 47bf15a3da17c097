/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once
#define SEC(name)
#define __ksym
