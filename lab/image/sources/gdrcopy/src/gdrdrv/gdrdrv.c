// SPDX-License-Identifier: GPL-2.0
// STAND-IN of the epready lab, not GDRCopy's driver: a character device of that name with a major number of the kernel's
// choice and no node of its own, as the real one has it. It maps nothing.
#include <linux/fs.h>
#include <linux/module.h>

static const struct file_operations fops = { .owner = THIS_MODULE };
static int major;

static int __init gdrdrv_init(void)
{
	major = register_chrdev(0, "gdrdrv", &fops);
	return major < 0 ? major : 0;
}

static void __exit gdrdrv_exit(void)
{
	unregister_chrdev(major, "gdrdrv");
}

module_init(gdrdrv_init);
module_exit(gdrdrv_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("stand-in for GDRCopy's gdrdrv, epready lab");
MODULE_VERSION("2.5.2");
