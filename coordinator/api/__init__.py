"""One file per Kafka API: request in, reply out. `ls` of this folder is the supported surface."""
