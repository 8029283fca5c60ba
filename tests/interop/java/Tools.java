// Kafka's command-line tools, one after the other in one Java: starting one takes longer than most of them run.
//
// Each line of the input is a call: Base64 words, separated by spaces: the name of the class, the text that the tool
// reads as its input, and the arguments. Each line of the output is an answer: the exit code and, in Base64, what the
// tool wrote to its output and to its error output.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Base64;

import org.apache.kafka.common.utils.Exit;

public final class Tools {
    /** Ends a tool where it would end its Java. */
    private static final class Exited extends Error {
    }

    // Scala's Console keeps the first System.out that it sees, so the streams stay and their content changes
    private static final ByteArrayOutputStream OUTPUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERRORS = new ByteArrayOutputStream();
    private static Integer exitCode;

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        var calls = new BufferedReader(new InputStreamReader(System.in));
        System.setOut(new PrintStream(OUTPUT, true, "UTF-8"));
        System.setErr(new PrintStream(ERRORS, true, "UTF-8"));
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            String[] words = Arrays.stream(line.split(" ", -1)).map(Tools::decoded).toArray(String[]::new);
            int code = run(words[0], words[1], Arrays.copyOfRange(words, 2, words.length));
            System.out.flush();
            System.err.flush();
            answers.println(code + " " + encoded(OUTPUT) + " " + encoded(ERRORS));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** A tool that catches what ends it may exit again: the first code counts. */
    private static void exit(int code) {
        if (exitCode == null) {
            exitCode = code;
        }
        throw new Exited();
    }

    private static int run(String tool, String given, String[] arguments) {
        OUTPUT.reset();
        ERRORS.reset();
        exitCode = null;
        InputStream input = new ByteArrayInputStream(given.getBytes());
        System.setIn(input);
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failure) {
            if (!(failure.getCause() instanceof Exited)) {
                failure.getCause().printStackTrace();
                return exitCode == null ? 1 : exitCode;
            }
        } catch (ReflectiveOperationException failure) {
            failure.printStackTrace();
            return 1;
        }
        return exitCode == null ? 0 : exitCode;
    }

    private static String decoded(String word) {
        return new String(Base64.getDecoder().decode(word));
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        return Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
