import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;

/** Where Kafka's own producer puts keys: java -cp 'lib/*' PartitionForKey.java PARTITIONS HEXKEY... prints a partition for each. */
public final class PartitionForKey {
    public static void main(String[] arguments) {
        int partitions = Integer.parseInt(arguments[0]);
        for (int at = 1; at < arguments.length; at++) {
            byte[] key = HexFormat.of().parseHex(arguments[at]);
            System.out.println(BuiltInPartitioner.partitionForKey(key, partitions));
        }
    }
}
