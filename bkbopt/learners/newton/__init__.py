"""Online Newton steps in the kernel's space: KONS, Sketched-KONS, PROS-N-KONS."""
