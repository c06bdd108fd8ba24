# The black box: prints the cost of a pump, with a measurement error. Run it as
#     awk -v speed=2500 -v impeller=140 -v stages=3 -v blades=curved -v head=60 -f pump.awk
# It fails (exit status 3, no output) where the pump would burst.

BEGIN {
    srand(ENVIRON["BKBOPT_TRIAL"]) # another error for each trial
    tip = 3.14159265 * impeller / 1000 * speed / 60 # metres a second
    if (tip > 45) {
        print "the impeller bursts" > "/dev/stderr"
        exit 3
    }
    lift = stages * (blades == "curved" ? 0.55 : 0.48) * tip * tip / 9.81
    short = (lift - head) / head
    power = (tip / 20) ^ 3 * stages * (impeller / 160) ^ 2
    noise = sqrt(-2 * log(1 - rand())) * cos(6.28318531 * rand())
    printf "%.6f\n", 40 * short * short + power + 0.4 * stages + 0.1 * noise
}
