import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the words of topic `in` into topic `out`, with a standby of its state, until SIGTERM. It prints its states, and
 *
 * STANDBY PARTITION OFFSET       a standby has the changelog up to that offset
 * PROMOTED PARTITION OFFSET END  a standby with that offset becomes active; the changelog ends at END
 * RESTORED PARTITION RECORDS     a state was restored from so many records of the changelog
 */
public class WordCount {
    public static void main(String[] args) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "count");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, args[1]);
        properties.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, 1);
        properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 3);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("in", Consumed.with(Serdes.String(), Serdes.String()))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream().mapValues(String::valueOf).to("out", Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.setStandbyUpdateListener(new Standbys());
        streams.setGlobalStateRestoreListener(new Restores());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(30))));
        streams.start();
    }

    private static synchronized void say(String what, TopicPartition partition, Object... numbers) {
        var line = new StringBuilder(what).append(' ').append(partition.partition());
        for (Object number : numbers) {
            line.append(' ').append(number);
        }
        System.out.println(line);
    }

    private static final class Standbys implements StandbyUpdateListener {
        @Override
        public void onUpdateStart(TopicPartition partition, String store, long offset) {
        }

        @Override
        public void onBatchLoaded(
            TopicPartition partition, String store, TaskId task, long batchEnd, long records, long end) {
            say("STANDBY", partition, batchEnd);
        }

        @Override
        public void onUpdateSuspended(
            TopicPartition partition, String store, long offset, long end, SuspendReason reason) {
            say(reason.name(), partition, offset, end);
        }
    }

    private static final class Restores implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long offset, long end) {
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long records) {
        }

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long records) {
            say("RESTORED", partition, records);
        }
    }
}
