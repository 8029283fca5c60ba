import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

/** Reads a line for each configuration, "broker" or "topic" and NAME=VALUE with tabs between; prints OK or ERR WHY. */
public class Configs {
    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t");
            Map<String, String> values = new HashMap<>();
            for (int i = 1; i < parts.length; i++) {
                int equals = parts[i].indexOf('=');
                values.put(parts[i].substring(0, equals), parts[i].substring(equals + 1));
            }
            System.out.println(parts[0].equals("topic") ? topic(values) : broker(values));
        }
    }

    private static String broker(Map<String, String> values) {
        Properties properties = new Properties();
        properties.put("process.roles", "broker,controller");
        properties.put("node.id", "1");
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("controller.quorum.voters", "1@127.0.0.1:9093");
        properties.put("listeners", "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093");
        properties.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
        properties.putAll(values);
        return outcome(() -> kafka.server.KafkaConfig.fromProps(properties, false));
    }

    private static String topic(Map<String, String> values) {
        return outcome(() -> org.apache.kafka.storage.internals.log.LogConfig.validate(values));
    }

    private static String outcome(Runnable check) {
        try {
            check.run();
            return "OK";
        } catch (Throwable refused) {
            return "ERR " + String.valueOf(refused.getMessage()).replace('\n', ' ');
        }
    }
}
