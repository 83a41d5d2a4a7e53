int nvshmem_stand_in(void);
