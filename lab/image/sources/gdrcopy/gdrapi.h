int gdr_stand_in(void);
