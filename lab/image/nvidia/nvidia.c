// SPDX-License-Identifier: GPL-2.0
// STAND-IN, not NVIDIA's driver. A kernel module named `nvidia` that has the two module options which matter to
// EP and shows them where the real driver does, so that modprobe.d, the initramfs and reboots can be tested
// without a GPU. It drives nothing.
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

static char *NVreg_RegistryDwords;
module_param(NVreg_RegistryDwords, charp, 0400);
static char *NVreg_RegistryDwordsPerDevice;
module_param(NVreg_RegistryDwordsPerDevice, charp, 0400);
static int NVreg_EnableStreamMemOPs;
module_param(NVreg_EnableStreamMemOPs, int, 0400);
static int NVreg_EnableGpuFirmware = 18;
module_param(NVreg_EnableGpuFirmware, int, 0400);

static struct proc_dir_entry *dir_driver, *dir_nvidia;

static int params_show(struct seq_file *s, void *v)
{
	seq_printf(s, "EnableStreamMemOPs: %u\n", NVreg_EnableStreamMemOPs);
	seq_printf(s, "EnableGpuFirmware: %u\n", NVreg_EnableGpuFirmware);
	seq_printf(s, "RegistryDwords: \"%s\"\n", NVreg_RegistryDwords ? NVreg_RegistryDwords : "");
	seq_printf(s, "RegistryDwordsPerDevice: \"%s\"\n",
		   NVreg_RegistryDwordsPerDevice ? NVreg_RegistryDwordsPerDevice : "");
	return 0;
}

static int version_show(struct seq_file *s, void *v)
{
	seq_puts(s, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (stand-in)\n");
	seq_puts(s, "GCC version:  stand-in of the epready lab\n");
	return 0;
}

static int __init standin_init(void)
{
	// /proc/driver exists already where the kernel was built with one of its users (rtc); keep what is there.
	dir_nvidia = proc_mkdir("driver/nvidia", NULL);
	if (!dir_nvidia) {
		dir_driver = proc_mkdir("driver", NULL);
		dir_nvidia = proc_mkdir("driver/nvidia", NULL);
	}
	if (!dir_nvidia)
		return -ENOMEM;
	proc_create_single("params", 0444, dir_nvidia, params_show);
	proc_create_single("version", 0444, dir_nvidia, version_show);
	pr_info("nvidia stand-in: RegistryDwords=%s\n", NVreg_RegistryDwords ? NVreg_RegistryDwords : "");
	return 0;
}

static void __exit standin_exit(void)
{
	remove_proc_entry("params", dir_nvidia);
	remove_proc_entry("version", dir_nvidia);
	remove_proc_entry("driver/nvidia", NULL);
	if (dir_driver)
		remove_proc_entry("driver", NULL);
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Stand-in for the nvidia module: module options only");
MODULE_VERSION("580.95.05");
